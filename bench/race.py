#!/usr/bin/env python3
"""Race sluice against llama.cpp on one machine: interleaved runs, medians, the ratio.

  race.py MODEL --peer DIR [--ram MIB] [options]

DIR holds llama.cpp's llama-completion and llama-bench, or an executable `run` that starts them
(`DIR/run llama-bench ...`). With --ram both run in a memory control group of that many MiB (root,
cgroup v1 or v2), page cache included and dropped before each run, as on a machine with less
memory: then decode is compared on the same prompt, llama.cpp reading by mmap. Without it both hold
the model in memory: then prefill and decode are compared with the better of llama.cpp's repack on
and off, and decode once more for the runs whose cores were near each other throughout, and for
those whose cores were far apart (core_distance, which `make build` puts beside sluice, tells).

Race on a quiet machine: with other work running, the peer's spinning threads collapse and the ratio
says nothing. The load average is printed before the result.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

PROMPT = "The quick brown fox jumps over the lazy dog and runs into the forest."
NEAR_NS = 80  # a cache line between two cores of one chiplet takes some 35 ns, of two 150
PLACEMENT_WAIT_S = 60


class MemoryGroup:
    """A control group with a limit on memory, without swap."""

    def __init__(self, mib):
        root = pathlib.Path("/sys/fs/cgroup")
        first = (root / "memory").is_dir()  # cgroup v1
        self.path = (root / "memory" if first else root) / f"sluice-race-{os.getpid()}"
        self.path.mkdir()
        if not first:
            subprocess.run(["sh", "-c", f"echo +memory > {root}/cgroup.subtree_control"],
                           check=False)
        limit = "memory.limit_in_bytes" if first else "memory.max"
        (self.path / limit).write_text(str(mib << 20))
        swap = self.path / "memory.swap.max"
        if swap.exists():
            swap.write_text("0")
        self.peak_file = self.path / ("memory.max_usage_in_bytes" if first else "memory.peak")

    def enter(self):
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def peak_mib(self):
        return int(self.peak_file.read_text()) >> 20

    def close(self):
        empty = self.path / "memory.force_empty"
        if empty.exists():
            empty.write_text("1")
        self.path.rmdir()


def run(command, ram_mib):
    """Runs a command, in a memory group if asked; gives stdout, stderr and the peak in MiB."""
    os.sync()
    group = None
    if ram_mib:
        pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")
        group = MemoryGroup(ram_mib)
    with tempfile.TemporaryFile("w+") as errors:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=errors, text=True,
                              preexec_fn=group.enter if group else None)
        errors.seek(0)
        error_text = errors.read()
    peak = group.peak_mib() if group else 0
    if group:
        group.close()
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{error_text[-2000:]}\nexit {done.returncode}")
    return done.stdout, error_text, peak


def peer_command(directory, program):
    runner = pathlib.Path(directory) / "run"
    return [str(runner), program] if runner.exists() else [str(pathlib.Path(directory) / program)]


def peer_streaming(options):
    command = peer_command(options.peer, "llama-completion") + [
        "-m", options.model, "-t", str(options.threads), "-p", PROMPT, "-n", str(options.peer_gen),
        "--temp", "0", "--ignore-eos", "-no-cnv", "--no-warmup", "--no-repack", "-c", "512"]
    _, errors, _ = run(command, options.ram)
    found = re.search(r"^.*\beval time =.*?([\d.]+) tokens per second", re.sub(
        r".*prompt eval time.*", "", errors), re.M)
    if not found:
        sys.exit("no eval time in the peer's output:\n" + errors[-2000:])
    return float(found.group(1))


def our_streaming(options):
    command = [options.sluice, "run", options.model, "-p", PROMPT, "-n", str(options.gen), "--temp",
               "0", "--ignore-eos", "--ctx", "512", "--isa", options.isa, "--threads",
               str(options.threads), "--json", "--quiet"]
    out, _, peak = run(command, options.ram)
    report = json.loads(out)
    report["group_peak_mib"] = peak
    return report


def race_streaming(options):
    ours, theirs = [], []
    for number in range(options.rounds):
        ours.append(our_streaming(options))
        theirs.append(peer_streaming(options))
        mine = ours[-1]
        print(f"round {number + 1}: sluice {mine['decode_tok_s']:.2f} tokens/s (hit rate "
              f"{100 * mine['moe']['hit_rate']:.1f} %, "
              f"{mine['moe']['bytes_per_token'] / 2**20:.1f} MiB/token, "
              f"{100 * mine['roofline']['reached']:.0f} % of the roofline, peak RSS "
              f"{mine['memory']['rss_peak'] >> 20} MiB, group peak {mine['group_peak_mib']} MiB)   "
              f"llama.cpp {theirs[-1]:.3f}", flush=True)
    rate = statistics.median(report["decode_tok_s"] for report in ours)
    peer = statistics.median(theirs)
    print(f"decode under {options.ram} MiB: sluice {rate:.2f}, llama.cpp {peer:.3f} tokens/s, "
          f"ratio {rate / peer:.1f}")


def distance_tool(options):
    return pathlib.Path(options.sluice).parent / "core_distance"


def core_placement(options):
    """'near' or 'far': whether two cores share their way to memory; 'unknown' without the tool."""
    tool = distance_tool(options)
    if not tool.exists():
        return "unknown"
    return "near" if float(subprocess.check_output([tool])) < NEAR_NS else "far"


def awaited_placement(options):
    """Where the cores are, once they are where --cores wants them or patience has ended."""
    end = time.monotonic() + PLACEMENT_WAIT_S
    while (now := core_placement(options)) != options.cores and options.cores:
        if time.monotonic() > end:
            break
    return now


def placed(options, measure):
    """A measurement, and where the cores were while it ran: 'moved' if not in one place."""
    before = awaited_placement(options)
    rates = measure()
    rates["cores"] = before if core_placement(options) == before else "moved"
    return rates


def peer_resident(options, repack):
    command = peer_command(options.peer, "llama-bench") + [
        "-m", options.model, "-t", str(options.threads), "-p", str(options.prompt), "-n",
        str(options.gen), "-r", "1", "--repack", str(repack), "-o", "json"]
    out, _, _ = run(command, 0)
    rates = {"prefill": 0.0, "decode": 0.0}
    for row in json.loads(out):
        rates["prefill" if row["n_prompt"] else "decode"] = row["avg_ts"]
    return rates


def our_bench(options, stream, prompt, gen):
    command = [options.sluice, "bench", options.model, "--prompt", str(prompt), "--gen", str(gen),
               "--reps", "1", "--warm", "--moe-stream", stream, "--isa", options.isa, "--threads",
               str(options.threads), "--json", "--quiet"]
    out, _, _ = run(command, 0)
    return json.loads(out)


def our_decode(options, stream):
    report = our_bench(options, stream, 1, options.gen)
    return {"decode": report["decode_tok_s"],
            "ram_s": report["roofline"]["ram_s"] / max(1e-9, report["decode_s"])}


def our_prefill(options):
    return our_bench(options, "off", options.prompt, 1)["prefill_tok_s"] if options.prompt else 0.0


def our_resident(options, stream):
    """As llama-bench measures: a prompt, and tokens that do not follow one."""
    return {"prefill": our_prefill(options) if stream == "off" else 0.0,
            **our_decode(options, stream)}


def median(runs, key):
    return statistics.median(run[key] for run in runs) if runs else 0.0


def of_place(runs, place):
    return [run for run in runs if run["cores"] == place]


def print_ratio(name, key, ours, peers):
    """Ours beside the better of the peer's two ways, and how many runs each median is of."""
    mine, best = median(ours, key), max(peers.values(), key=lambda runs: median(runs, key))
    if not mine or not median(best, key):
        return
    print(f"{name}: sluice {mine:.2f}, llama.cpp's best {median(best, key):.2f} tokens/s, ratio "
          f"{mine / median(best, key):.2f} ({len(ours)} and {len(best)} runs)")


def race_resident(options):
    ours, streamed, peers = [], [], {0: [], 1: []}
    runners = [lambda: ours.append(placed(options, lambda: our_resident(options, "off"))),
               lambda: peers[0].append(placed(options, lambda: peer_resident(options, 0))),
               lambda: peers[1].append(placed(options, lambda: peer_resident(options, 1)))]
    if options.streamed:
        runners.append(
            lambda: streamed.append(placed(options, lambda: our_resident(options, "on"))))
    for number in range(options.rounds):
        # Another one first each round: memory is slower after a pause than after work.
        for turn in range(len(runners)):
            runners[(number + turn) % len(runners)]()
        rows = [("sluice", ours), ("streaming, all resident", streamed),
                ("llama.cpp repack 0", peers[0]), ("repack 1", peers[1])]
        print(f"round {number + 1}: " + "   ".join(
            f"{name} {runs[-1]['prefill']:.1f} / {runs[-1]['decode']:.2f} {runs[-1]['cores']}"
            for name, runs in rows if runs), flush=True)
    print_ratio("prefill", "prefill", ours, peers)
    print_ratio("decode", "decode", ours, peers)
    for place in ("near", "far"):
        mine = of_place(ours, place)
        print_ratio(f"decode, cores {place}", "decode", mine,
                    {repack: of_place(runs, place) for repack, runs in peers.items()})
        if mine:
            print(f"  of the memory rate: {100 * median(mine, 'ram_s'):.0f} %")
        if mine and of_place(streamed, place):
            gain = median(of_place(streamed, place), "decode") / median(mine, "decode") - 1
            print(f"  streaming with every expert resident: {100 * gain:+.1f} %")


def count(text):
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def check(parser, options):
    """Says at once what would end a race in its middle, or change nothing."""
    for path in (options.model, options.peer, options.sluice):
        if not pathlib.Path(path).exists():
            parser.error(f"there is no '{path}'")
    if options.ram and (options.cores or options.streamed):
        parser.error("--cores and --streamed are for races without --ram")
    if options.cores and not distance_tool(options).exists():
        parser.error(f"--cores needs '{distance_tool(options)}'; 'make build' makes it")


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = lambda name, fallback, text, kind=count: parser.add_argument(
        name, type=kind, default=fallback, help=f"{text} (default: {fallback})")
    parser.add_argument("model", metavar="MODEL", help="a GGUF file that both can run")
    parser.add_argument("--peer", metavar="DIR", required=True, help="where llama.cpp is")
    add("--sluice", "build/sluice", "the program to race", str)
    parser.add_argument("--ram", metavar="MIB", type=count, help="memory for each, streamed")
    add("--rounds", 3, "runs of each program")
    add("--gen", 64, "tokens to decode")
    add("--peer-gen", 12, "tokens that llama.cpp decodes with --ram, where it is slow")
    add("--prompt", 512, "tokens of the prompt without --ram; 0 leaves prefill out", int)
    add("--threads", os.cpu_count(), "threads of each")
    add("--isa", "auto", "kernels of sluice; llama.cpp's are those of its build", str)
    parser.add_argument("--cores", choices=["near", "far"],
                        help="wait before each run until the cores are so, a minute at most")
    parser.add_argument("--streamed", action="store_true",
                        help="also stream with every expert resident")
    options = parser.parse_args()
    check(parser, options)
    return options


def main():
    options = parse_options()
    print(f"load average before: {os.getloadavg()[0]:.2f}; {os.cpu_count()} cores")
    race_streaming(options) if options.ram else race_resident(options)


if __name__ == "__main__":
    main()
