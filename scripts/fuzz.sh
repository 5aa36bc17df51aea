#!/bin/sh
# fuzz.sh BUILD_FOLDER SECONDS
#
# Runs every fuzz target of a build folder for an equal share of the time. Inputs found on the way
# stay in BUILD_FOLDER/corpus and are where the next run starts; an input that crashes a target is
# left in BUILD_FOLDER, and the script fails.
set -eu

folder=$1
targets=$(find "$folder" -maxdepth 1 -name '*_fuzz' | sort)
if [ -z "$targets" ]; then
  echo "no fuzz targets in $folder" >&2
  exit 1
fi
seconds=$(($2 / $(echo "$targets" | wc -l)))
for target in $targets; do
  name=$(basename "$target")
  echo "$name for $seconds s"
  mkdir -p "$folder/corpus/$name"
  "$target" -max_total_time="$seconds" -fork="$(nproc)" -artifact_prefix="$folder/" \
    "$folder/corpus/$name"
done
