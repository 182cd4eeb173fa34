from dataclasses import dataclass


@dataclass
class Order:
    article: str
    number: int

    def total(self, price):
        return self.number * price


@dataclass
class Express(Order):
    fee: int = 5

    def total(self, price):
        return super().total(price) + self.fee
