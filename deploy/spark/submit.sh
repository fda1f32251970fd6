#!/bin/sh
# Runs `tidemark stream` with spark-submit. Arguments go to the verb: --checkpoint DIR, --once, ...
#
#   TIDEMARK_CONFIG     the configuration file (required, unless --config is given)
#   TIDEMARK_MASTER     --master, default local[4]. The driver runs here (client mode); Kafka and the
#                       executors must reach it
#   TIDEMARK_PYTHON     the Python that has tidemark[stream], default python3
#   PYSPARK_PYTHON      the Python on the executors, default TIDEMARK_PYTHON. Where it has tidemark too,
#                       set `spark.python.daemon.module: tidemark.stream.daemon` in stream.spark:
#                       batches are about a second faster
#   TIDEMARK_PY_FILES   a zip of the package `tidemark` for executors without it (they still need
#                       msgspec, pandas, pyarrow and pyyaml)
#   TIDEMARK_JARS       a folder with the Kafka connector's jars; without it they are fetched once
#   SPARK_HOME          the Spark with the spark-submit to use, default TIDEMARK_PYTHON's PySpark, which
#                       must have the same version
#   JAVA_HOME           a Java 17 or 21, default the one that `tidemark stream` uses
#   SPARK_SUBMIT_ARGS   further arguments of spark-submit, split at blanks
#
# On SIGTERM the JVM ends at once. The next start repeats the batch in flight, with the same rows and
# ids.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
python=${TIDEMARK_PYTHON:-python3}
master=${TIDEMARK_MASTER:-local[4]}

JAVA_HOME=$("$python" -m tidemark.jvm --java-home)
jars=$("$python" -c 'from tidemark.jvm.jars import connector_jars; print(",".join(map(str, connector_jars())))')
logs=$("$python" -c 'from tidemark.stream.spark_internals import LOG_CONFIGURATION; print(LOG_CONFIGURATION.as_uri())')
SPARK_HOME=${SPARK_HOME:-$("$python" -c 'import pathlib, pyspark; print(pathlib.Path(pyspark.__file__).parent)')}
PYSPARK_PYTHON=${PYSPARK_PYTHON:-$(command -v "$python")}
PYSPARK_DRIVER_PYTHON=$(command -v "$python")
export JAVA_HOME SPARK_HOME PYSPARK_PYTHON PYSPARK_DRIVER_PYTHON

case $master in
  local*)
    # A local run listens on this machine only, for this user: Spark makes the secret itself.
    SPARK_LOCAL_IP=127.0.0.1
    export SPARK_LOCAL_IP
    case $master in
      local-cluster*) authenticate=false ;;
      *) authenticate=true ;;
    esac
    set -- --conf spark.driver.host=127.0.0.1 --conf spark.driver.bindAddress=127.0.0.1 \
      --conf spark.ui.enabled=false --conf "spark.authenticate=$authenticate" "$here/main.py" "$@"
    ;;
  *) set -- "$here/main.py" "$@" ;;
esac

# shellcheck disable=SC2086 # SPARK_SUBMIT_ARGS is a list of words.
exec "$SPARK_HOME/bin/spark-submit" --master "$master" --name tidemark-stream --jars "$jars" \
  ${TIDEMARK_PY_FILES:+--py-files "$TIDEMARK_PY_FILES"} \
  --driver-java-options "-Dlog4j2.configurationFile=$logs" \
  ${SPARK_SUBMIT_ARGS:-} "$@"
