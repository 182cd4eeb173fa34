# Two commands do everything: `make demo` and `make test`. Both create the virtual environment on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Test files that need neither Spark nor a server share nothing.
SIDE_BY_SIDE := -n auto --maxprocesses 8 --dist loadfile
# Tests with Spark and servers wait more than they work, but each needs some gigabytes of memory.
THREE_BY_THREE := -n 3 --dist loadfile

# A link that leads nowhere is an error. The variable silences an advertisement of the theme.
SITE = NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

.PHONY: help demo test-long test-matrix web screenshots test unit spark check format services services-stop kills kills-service test-yarn image test-chart test-compose test-kubernetes nemesis recoveries bench-rescaling mutants soak soak-takeovers soak-faults soak-sinks soak-servers soak-kafka soak-epochs bench bench-batch bench-batch-sql bench-checkpoints bench-connectors bench-latency bench-cep bench-columns bench-messages bench-sql bench-kernels bench-epochs bench-queryable bench-metrics bench-rest bench-history bench-start bench-quick compare-cep compat docs release-check clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  \1\t\2/'

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Penstock needs Python 3.11 or newer; found " + sys.version.split()[0] + ". Point to one with: make PYTHON=python3.11 ...")'
	@command -v java >/dev/null 2>&1 || [ -n "$$JAVA_HOME" ] || { echo "Spark needs Java 17 or newer, and none was found. Debian, Ubuntu: apt install openjdk-17-jre-headless; macOS: brew install openjdk@17" >&2; exit 1; }
	@echo "creating the virtual environment and installing (a few minutes the first time) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --upgrade pip
	@$(BIN)/python -m pip install -q -e '.[dev]'
	@touch $@

web: $(STAMP)  ## build the web pages into penstock/service/rest/web, with the Node that is there or one from PyPI
	@$(BIN)/python web/build.py

# Without the network the server goes without its pages, and says so.
WEB_IF_POSSIBLE = $(BIN)/python web/build.py --if-possible

demo: $(STAMP)  ## simulated sensors on embedded Spark, live, until Ctrl-C
	@$(WEB_IF_POSSIBLE)
	@$(BIN)/python -m penstock.service.demo $(DEMO)

test: check  ## the whole suite: checks, unit tests, tests on real Spark
	@$(WEB_IF_POSSIBLE)
	$(BIN)/python -m pytest tests $(SIDE_BY_SIDE) -m "not soak and not spark and not service" -q
	$(BIN)/python -m pytest tests $(THREE_BY_THREE) -m "not soak and (spark or service)" -q

unit: $(STAMP)  ## fast tests, of the operators of SQL too, that need neither Spark nor a server
	$(BIN)/python -m pytest tests/unit tests/model tests/contract tests/plans tests/surface tests/table/runtime $(SIDE_BY_SIDE) -m "not soak and not spark and not service" -q

test-long: $(STAMP)  ## tests that make test leaves out for their length: more seeds, more kills, more clusters
	$(BIN)/python -m pytest tests $(THREE_BY_THREE) -m soak -q

test-matrix: $(STAMP)  ## a part of the suite on each version of Spark, Python and pandas (MATRIX="spark=3.5 python=3.12" for some; MATRIX=again)
	$(BIN)/python -m tests.compat.matrix $(MATRIX)

spark: $(STAMP)  ## only what runs on real Spark
	$(BIN)/python -m pytest tests -m spark -q

check: $(STAMP)  ## ruff, mypy --strict, pyright on the examples, import layers, links of the documentation, the web pages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy examples
	$(BIN)/python -m tests.typing.checkers
	PATH=$(BIN):$$PATH $(BIN)/lint-imports --no-cache
	$(SITE)
	$(BIN)/python web/build.py check --if-possible

format: $(STAMP)  ## let ruff and prettier fix and format
	$(BIN)/python web/build.py format --if-possible
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

services: $(STAMP)  ## start Kafka, PostgreSQL, RabbitMQ, Cassandra, Elasticsearch, S3, ZooKeeper on their usual ports (SERVICES="kafka postgres" for some)
	@$(BIN)/python -m tests.services start $(SERVICES)

services-stop: $(STAMP)  ## stop them again
	@$(BIN)/python -m tests.services stop $(SERVICES)

IMAGE ?= penstock:$(shell sed -n 's/__version__ = "\(.*\)"/\1/p' penstock/__init__.py)
BASE_IMAGE := docker.io/library/python:3.12-slim-bookworm

image: $(STAMP)  ## build the image with buildah, podman or docker, and test it (IMAGE=name:tag)
	$(BIN)/python -m tests.labs.kubernetes.build_image $(IMAGE)
	PENSTOCK_IMAGE=$(IMAGE) $(BIN)/python -m pytest tests/labs/kubernetes/test_image.py -m soak -q

test-chart: $(STAMP)  ## render the Helm chart (Helm is built with Go if it is missing), and compare it with the manifests
	$(BIN)/python -m pytest tests/labs/kubernetes/test_chart.py -m soak -q

test-compose: image  ## the compose file with podman-compose or docker compose: a job through a killed worker (port 8081)
	PENSTOCK_COMPOSE=1 $(BIN)/python -m pytest tests/labs/compose -m soak -q -s

test-kubernetes: test-chart  ## a real Kubernetes on this machine (Linux, root): jobs through kills, with a table of recovery times
	$(BIN)/python -m tests.labs.kubernetes.prepare $(BASE_IMAGE)
	$(BIN)/python -m tests.labs.kubernetes.build_image localhost/$(IMAGE) --lab
	PENSTOCK_LAB=1 PENSTOCK_IMAGE=localhost/$(IMAGE) $(BIN)/python -m pytest tests/labs/kubernetes/test_image.py -m soak -q
	PENSTOCK_LAB_IMAGE=localhost/$(IMAGE) unshare --mount --net --pid --fork --kill-child --mount-proc $(BIN)/python -m pytest tests/labs/kubernetes/test_kubernetes.py -m soak -q -s

kills: $(STAMP)  ## kill -9 of slots, executors and drivers, ten rounds each; a table of recovery times (KILLS="--rounds 3")
	@$(BIN)/python -m pip install -q -e '.[bench]'
	$(BIN)/python benchmarks/kills.py $(KILLS)

kills-service: $(STAMP)  ## kill -9 of servers, leaders and their drivers, ten rounds each, and twenty jobs at once (KILLS="--rounds 3")
	@$(BIN)/python -m pip install -q -e '.[bench]'
	$(BIN)/python benchmarks/service_kills.py $(KILLS)

test-yarn: $(STAMP)  ## jobs on real YARN and HDFS, through kills (some 20 minutes; YARN="-k archive" for some)
	$(BIN)/python -m pytest tests/yarn tests/connectors/storage/test_storage_promises.py -m soak -sv $(YARN)

nemesis: $(STAMP)  ## random faults across hosts (Linux, root) until Ctrl-C: kills, lost power, partitions, disks (NEMESIS="7 1" repeats seed 7)
	@$(BIN)/python -m tests.nemesis $(NEMESIS)

recoveries: $(STAMP)  ## times of recovery by kind of fault across hosts (Linux, root; RECOVERIES="--rounds 3 --only slot power")
	@$(BIN)/python -m tests.nemesis.recoveries $(RECOVERIES)

bench-rescaling: $(STAMP)  ## how long a running job takes to continue with another parallelism, by the size of its state
	@$(BIN)/python -m pip install -q -e '.[bench]'
	$(BIN)/python benchmarks/rescaling.py $(RESCALING)

mutants: $(STAMP)  ## random small changes of critical modules: which do the fast tests notice? (MUTANTS="--sample 20 timers" for one room)
	@$(BIN)/python -m tests.mutants $(MUTANTS)

soak: $(STAMP)  ## simulated crashes until Ctrl-C; prints the seed of every failure (SEED=n to begin there)
	@$(BIN)/python -m tests.crash.soak $(SEED)

soak-takeovers: $(STAMP)  ## the same with drivers that take the job from each other
	@$(BIN)/python -m tests.crash.soak --takeovers $(SEED)

soak-faults: $(STAMP)  ## the same with a storage that fails, tears and hides files, and clocks that jump
	@$(BIN)/python -m tests.crash.soak --faults $(SEED)

soak-sinks: $(STAMP)  ## random queries into a table of SQLite through simulated crashes (SEED=n to begin there)
	@$(BIN)/python -m tests.crash.soak --sinks $(SEED)

soak-servers: $(STAMP)  ## the same into PostgreSQL, upsert-kafka and Elasticsearch in turn
	@$(BIN)/python -m tests.crash.soak --servers $(SEED)

soak-kafka: $(STAMP)  ## ten minutes from Kafka through windows to Kafka, with a broker that goes away and a new partition
	@$(BIN)/python -m tests.connectors.kafka_soak.windows $(SECONDS)

soak-epochs: $(STAMP)  ## an hour of idling and of work, watched for memory that grows (SOAK="--seconds 600" for less)
	@$(BIN)/python -m pip install -q -e '.[bench]'
	$(BIN)/python benchmarks/soak_epochs.py $(SOAK)

bench: $(STAMP)  ## Penstock beside its peers, in one go; tables and plot in benchmarks/results
	@$(BIN)/python -m pip install -q -e '.[bench]'
	$(BIN)/python benchmarks/run.py $(BENCH)
	$(MAKE) bench-checkpoints
	$(MAKE) bench-connectors
	$(MAKE) bench-latency
	$(MAKE) bench-epochs
	$(MAKE) bench-queryable
	$(MAKE) bench-start
	$(MAKE) bench-sql

bench-batch: $(STAMP)  ## a BATCH job over 4 GB of records beside plain PySpark (BATCH="--gigabytes 1" for less)
	@$(BIN)/python -m pip install -q -e '.[bench]'
	$(BIN)/python benchmarks/batch.py $(BATCH)

bench-batch-sql: $(STAMP)  ## BATCH queries: our operators, our plan on Spark SQL, plain Spark SQL
	@$(BIN)/python -m pip install -q -e '.[bench]'
	$(BIN)/python benchmarks/batch_sql.py $(BATCH_SQL)

bench-checkpoints: $(STAMP)  ## what checkpoints cost and how fast a job is back; part of make bench
	@$(BIN)/python -m pip install -q -e '.[bench]'
	$(BIN)/python benchmarks/checkpoints.py $(CHECKPOINTS)

bench-connectors: $(STAMP)  ## Kafka, files and lookups beside their peers; part of make bench
	@$(BIN)/python -m pip install -q -e '.[bench]'
	$(BIN)/python benchmarks/connectors.py $(CONNECTORS)

bench-latency: $(STAMP)  ## from source to sink through keyed state, with and without Kafka, beside PyFlink; part of make bench
	@$(BIN)/python -m pip install -q -e '.[bench]'
	$(BIN)/python benchmarks/latency.py $(LATENCY)

bench-cep: $(STAMP)  ## patterns beside FlinkCEP in Java and beside functions written by hand (CEP="--quick" for less)
	@$(BIN)/python -m pip install -q -e '.[bench]'
	$(BIN)/python benchmarks/cep.py $(CEP)

bench-columns: $(STAMP)  ## DataStream programs in columns beside the same programs in rows (COLUMNS="--quick" for less)
	@$(BIN)/python -m pip install -q -e '.[bench]'
	$(BIN)/python benchmarks/columns.py $(COLUMNS)

bench-messages: $(STAMP)  ## messages of Kafka read and written many at a time beside one by one (MESSAGES="--quick" for less)
	@$(BIN)/python -m pip install -q -e '.[bench]'
	$(BIN)/python benchmarks/messages.py $(MESSAGES)

bench-sql: $(STAMP)  ## SQL beside Flink SQL in Java and Spark Structured Streaming, Nexmark among it (SQL="--quick" for less); part of make bench
	@$(BIN)/python -m pip install -q -e '.[bench]'
	$(BIN)/python benchmarks/sql.py $(SQL)

bench-kernels: $(STAMP)  ## libraries that could do the work of a query on a batch of columns
	@$(BIN)/python -m pip install -q -e '.[bench]'
	$(BIN)/python benchmarks/kernels.py $(KERNELS)

bench-epochs: $(STAMP)  ## what an epoch costs in which nothing happens, and an idle job; part of make bench
	@$(BIN)/python -m pip install -q -e '.[bench]'
	$(BIN)/python benchmarks/epoch_cost.py $(EPOCHS)

bench-queryable: $(STAMP)  ## what lookups in queryable state cost a job, and how long they take; part of make bench
	@$(BIN)/python -m pip install -q -e '.[bench]'
	$(BIN)/python benchmarks/queryable.py $(QUERYABLE)

bench-metrics: $(STAMP)  ## what measuring costs a job, and how quickly REST answers for a large one (METRICS="--quick" for less)
	@$(BIN)/python -m pip install -q -e '.[bench]'
	$(BIN)/python benchmarks/metrics.py $(METRICS)

bench-rest: $(STAMP)  ## 200 requests a second on a server for a minute, while a job runs (REST="--quick" for less)
	@$(BIN)/python -m pip install -q -e '.[bench]'
	$(BIN)/python benchmarks/rest_load.py $(REST)

bench-history: $(STAMP)  ## the memory of a server with 1,000 jobs that have ended (HISTORY="--quick" for less)
	@$(BIN)/python -m pip install -q -e '.[bench]'
	$(BIN)/python benchmarks/history.py $(HISTORY)

bench-start: $(STAMP)  ## how long it takes to the first result, warm and cold, beside PyFlink; part of make bench
	@$(BIN)/python -m pip install -q -e '.[bench]'
	$(BIN)/python benchmarks/start.py $(START)

bench-quick: $(STAMP)  ## rates, latency, epochs and start with tiny sizes, to prove that they work
	@$(BIN)/python -m pip install -q -e '.[bench]'
	$(BIN)/python benchmarks/run.py --quick
	$(BIN)/python benchmarks/latency.py --quick
	$(BIN)/python benchmarks/epoch_cost.py --quick
	$(BIN)/python benchmarks/start.py --quick

compare-cep: $(STAMP)  ## random patterns that nobody has recorded, on FlinkCEP itself and on Penstock (CASES="--seed 2 --cases 500")
	$(BIN)/python -m tests.cep.fresh --flink "$${PENSTOCK_BENCH_VENVS:-.venvs}/flink" $(CASES)

compat: $(STAMP)  ## run PyFlink's own examples, unchanged, on Penstock
	$(BIN)/python tests/compat/run_pyflink_examples.py

screenshots: web  ## pictures of every web page into docs/pictures/ui, and of a notebook into docs/pictures/notebooks
	PENSTOCK_SCREENSHOTS=docs/pictures/ui $(BIN)/python -m pytest tests/web -m "not service" -q
	@$(BIN)/python -m pip install -q 'nbconvert>=7.16'
	$(BIN)/python docs/draw_notebooks.py

release-check: $(STAMP)  ## build sdist and wheel, install each into an empty environment, and run the program of the README
	$(BIN)/python -m tests.release_check

docs: $(STAMP)  ## draw the pictures and build the documentation into site/
	$(BIN)/python docs/draw_windows.py
	$(BIN)/python docs/draw_patterns.py
	$(SITE)

clean:  ## remove the environment and everything generated
	rm -rf $(VENV) .venvs .services site penstock/service/rest/web web/node_modules .mypy_cache .ruff_cache .pytest_cache .hypothesis
