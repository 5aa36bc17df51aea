#!/usr/bin/env python3
"""What the parts of streaming are worth on this machine: interleaved runs, medians, ratios.

  streaming.py lookahead MODEL --ram MIB[,MIB...] | --cache SIZE[,SIZE...]
               [--drive real|tmpfs|throttled] [--rounds 5]
      decode with lookahead and governor (the default) against none, for each memory cap or size
      of the expert cache; on the drive as it is, on a copy in memory, or throttled by a control
      group (--mib-per-s)
  streaming.py prompt MODEL [--tokens N] [--share 0.15]
      reads for each distinct expert, and stall with the read-ahead window against without
  streaming.py reply MODEL [--tokens 16384] [--share 0.15]
      stall of the first 32 tokens after a long prompt against the steady stall
  streaming.py bookkeeping MODEL
      decode with every expert resident: streaming (all its bookkeeping) against none

Measure on a quiet machine; the load average is printed. Throttling needs root and cgroup v1.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile

PROMPT = "The quick brown fox jumps over the lazy dog and runs into the forest."


def run(options, model, words, group=None):
    command = [options.sluice, "run", str(model), "--temp", "0", "--ignore-eos", "--json",
               "--quiet", "--moe-stream-census", "off", *words]
    enter = (lambda: (group / "cgroup.procs").write_text(str(os.getpid()))) if group else None
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          preexec_fn=enter)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr[-2000:]}\nexit {done.returncode}")
    return json.loads(done.stdout)


def median(reports, *path):
    def value(report):
        for key in path:
            report = report[key]
        return report
    return statistics.median(value(report) for report in reports)


class Throttle:
    """A control group in which the model's drive reads so many MiB/s."""

    def __init__(self, model, mib_per_s):
        device = os.stat(model).st_dev
        self.group = pathlib.Path(f"/sys/fs/cgroup/blkio/sluice-bench-{os.getpid()}")
        self.group.mkdir()
        (self.group / "blkio.throttle.read_bps_device").write_text(
            f"{os.major(device)}:{os.minor(device)} {mib_per_s << 20}")

    def close(self):
        self.group.rmdir()


def report_lookahead(name, off, on):
    rates = [median(r, "decode_tok_s") for r in (off, on)]
    # Of runs that follow each other, lest a machine that becomes slower looks like lookahead.
    gain = statistics.median(b["decode_tok_s"] / a["decode_tok_s"] for a, b in zip(off, on)) - 1
    stalls = [1e3 * median(r, "moe", "stall_s_per_token") for r in (off, on)]
    reached = [median(r, "roofline", "reached") for r in (off, on)]
    print(f"{name}: {rates[0]:.2f} tokens/s without, {rates[1]:.2f} with "
          f"({100 * gain:+.1f} %); stall {stalls[0]:.2f} and {stalls[1]:.2f} "
          f"ms a token ({100 * (stalls[1] / max(stalls[0], 1e-9) - 1):+.0f} %); roofline reached "
          f"{reached[0]:.2f} and {reached[1]:.2f}; hit rate "
          f"{median(on, 'moe', 'hit_rate'):.3f}", flush=True)


def sizes(options):
    """What each round runs with: its name and its words."""
    if options.cache:
        return [(f"a cache of {size}", ["--moe-stream-cache", size])
                for size in options.cache.split(",")]
    return [(f"{mib} MiB", ["--ram", f"{mib}M"]) for mib in options.ram.split(",")]


def lookahead(options):
    model, throttle, copy = pathlib.Path(options.model), None, None
    if options.drive == "tmpfs":
        copy = pathlib.Path(tempfile.mkdtemp(dir="/dev/shm"))
        model = pathlib.Path(shutil.copy(model, copy))
    elif options.drive == "throttled":
        throttle = Throttle(model, options.mib_per_s)
    group = throttle.group if throttle else None
    try:
        for name, size in sizes(options):
            words = ["-p", PROMPT, "-n", str(options.gen), "--ctx", str(options.gen + 64), *size]
            off, on = [], []
            for i in range(2 * options.rounds):
                if i % 4 in (0, 3):  # off on, on off, ...
                    off.append(run(options, model, [*words, "--moe-stream-lookahead", "0"], group))
                else:
                    on.append(run(options, model, words, group))
            report_lookahead(f"{options.drive}, {name}", off, on)
    finally:
        if throttle:
            throttle.close()
        if copy:
            shutil.rmtree(copy)


def facts(options):
    done = subprocess.run([options.sluice, "inspect", options.model, "--json"], check=True,
                          capture_output=True, text=True)
    return json.loads(done.stdout)


def prompt_words(options):
    """A prompt of random tokens and a cache that holds the share of the experts."""
    model = facts(options)
    draw = random.Random(1)
    tokens = " ".join(str(draw.randrange(model["vocabulary"])) for _ in range(options.tokens))
    slots = max(model["experts_used"], int(options.share * model["expert_layers"][0]["experts"]))
    return ["--tokens", tokens, "--ctx", str(options.tokens + 256), "--moe-stream-cache",
            f"{slots}s"]


def prompt(options):
    words = prompt_words(options)
    off, on = [], []
    for _ in range(options.rounds):
        off.append(run(options, options.model, [*words, "-n", "1", "--moe-stream-readahead", "0"]))
        on.append(run(options, options.model, [*words, "-n", "1"]))
    for name, reports in (("without", off), ("with", on)):
        print(f"{options.tokens} tokens {name} the window: "
              f"{median(reports, 'prefill_tok_s'):.1f} tokens/s, "
              f"{median(reports, 'moe', 'reads_per_distinct_expert'):.3f} reads for each distinct "
              f"expert, stall {median(reports, 'moe', 'prefill', 'stall_s'):.3f} s of "
              f"{median(reports, 'prefill_s'):.2f} s")


def reply(options):
    words = prompt_words(options)
    first, longer = [], []
    for _ in range(options.rounds):
        first.append(run(options, options.model, [*words, "-n", "33"]))
        longer.append(run(options, options.model, [*words, "-n", "161"]))
    first_stall = median(first, "moe", "stall_s") / 32
    steady_stall = (median(longer, "moe", "stall_s") - median(first, "moe", "stall_s")) / 128
    print(f"after {options.tokens} tokens: stall {1e3 * first_stall:.2f} ms a token in the first "
          f"32, {1e3 * steady_stall:.2f} in the next 128: {first_stall / steady_stall:.2f} times")


def bookkeeping(options):
    warm = ["bench", options.model, "--prompt", "16", "--gen", str(options.gen), "--reps", "1",
            "--warm", "--json", "--quiet"]
    off, on = [], []
    for _ in range(options.rounds):
        for mode, reports in (("off", off), ("on", on)):
            done = subprocess.run([options.sluice, *warm, "--moe-stream", mode], check=True,
                                  capture_output=True, text=True)
            reports.append(json.loads(done.stdout))
    rates = median(off, "decode_tok_s"), median(on, "decode_tok_s")
    print(f"all experts resident: {rates[0]:.2f} tokens/s without streaming, {rates[1]:.2f} with "
          f"({100 * (rates[1] / rates[0] - 1):+.1f} %)")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["lookahead", "prompt", "reply", "bookkeeping"])
    parser.add_argument("model")
    parser.add_argument("--sluice", default="build/sluice")
    parser.add_argument("--ram", default="400")
    parser.add_argument("--cache")
    parser.add_argument("--drive", choices=["real", "tmpfs", "throttled"], default="real")
    parser.add_argument("--mib-per-s", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--gen", type=int, default=192)
    parser.add_argument("--tokens", type=int)
    parser.add_argument("--share", type=float, default=0.15)
    options = parser.parse_args()
    if options.tokens is None:
        options.tokens = 16384 if options.what == "reply" else 4096
    print(f"load average before: {os.getloadavg()[0]:.2f}; {os.cpu_count()} cores")
    {"lookahead": lookahead, "prompt": prompt, "reply": reply,
     "bookkeeping": bookkeeping}[options.what](options)


if __name__ == "__main__":
    main()
