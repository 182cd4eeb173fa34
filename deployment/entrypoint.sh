#!/bin/bash
# Starts what the container is for. Spark on Kubernetes calls the image with `driver` or `executor`, and tells the rest
# in SPARK_ variables; every other command is run as it is.
set -eo pipefail

case "${1:-}" in
driver)
  shift
  exec "$SPARK_HOME/bin/spark-submit" --deploy-mode client \
    --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" \
    --conf "spark.executorEnv.SPARK_DRIVER_POD_IP=$SPARK_DRIVER_BIND_ADDRESS" "$@"
  ;;
executor)
  options=()
  for name in "${!SPARK_JAVA_OPT_@}"; do options+=("${!name}"); done
  # As in Spark's own image: settings first, then Spark's jars, then those of the user and the working folder.
  classes="${SPARK_CONF_DIR:-$SPARK_HOME/conf}:${HADOOP_CONF_DIR:+$HADOOP_CONF_DIR:}$SPARK_HOME/jars/*"
  classes+="${SPARK_CLASSPATH:+:$SPARK_CLASSPATH}${SPARK_EXTRA_CLASSPATH:+:$SPARK_EXTRA_CLASSPATH}:$PWD"
  classes+="${SPARK_DIST_CLASSPATH:+:$SPARK_DIST_CLASSPATH}"
  exec "${JAVA_HOME:+$JAVA_HOME/bin/}java" "${options[@]}" -Xms"$SPARK_EXECUTOR_MEMORY" -Xmx"$SPARK_EXECUTOR_MEMORY" \
    -cp "$classes" org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
    --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" \
    --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP" \
    --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" --podName "$SPARK_EXECUTOR_POD_NAME"
  ;;
*)
  exec "$@"
  ;;
esac
