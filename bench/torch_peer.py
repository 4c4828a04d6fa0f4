#!/usr/bin/env python3
"""torch_peer.py FILE.csv [SECONDS]: PyTorch on the same operations and sizes as `heddle bench threshold`, as rows of the same form
(docs/bench.md), so that `heddle bench report` draws both. Data lies on the device; each sample is one call and a synchronization, as
each of heddle's is one run and a wait; medians of up to 31 samples, after three that are left out."""
import csv, datetime, platform, statistics, sys, time
import torch

COLUMNS = ("bench,time,heddle,machine,os,cpu,threads,device,device_name,kind,backend,driver,op,type,size,elements,bytes,flops,counted,submissions,"
           "samples,median_ns,p90_ns,min_ns,max_ns,first_ns,synthetic").split(",")
MOST_SAMPLES = 31


def sample(run, seconds):
    begun = time.perf_counter_ns()
    run()
    torch.cuda.synchronize()
    first = time.perf_counter_ns() - begun
    taken = []
    for i in range(3 + MOST_SAMPLES):
        at = time.perf_counter_ns()
        run()
        torch.cuda.synchronize()
        ns = time.perf_counter_ns() - at
        if i >= 3:
            taken.append(ns)
        if i >= 6 and sum(taken) > seconds * 1e9:
            break
    return first, sorted(taken)


def operations():
    for power in range(20, 27):
        for n in (1 << power, 3 << power - 1):
            a, b, c = (torch.rand(n, device="cuda") for _ in range(3))
            yield "vecadd", "f32", f"n={n}", n, 12 * n, n, lambda a=a, b=b, c=c: torch.add(a, b, out=c)
    for name, kind in (("f32", torch.float32), ("f16", torch.float16)):
        for n in (1024, 1536, 2048, 3072, 4096, 6144, 8192):
            a, b, c = (torch.rand(n, n, device="cuda").to(kind) for _ in range(3))
            yield "matmul", name, f"m={n} n={n} k={n}", n * n, 3 * n * n * a.element_size(), 2 * n**3, lambda a=a, b=b, c=c: torch.matmul(a, b, out=c)


def main():
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 0.3
    same = {"bench": "threshold", "time": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), "machine": platform.node(),
            "device": "torch", "device_name": "PyTorch " + torch.__version__, "kind": "discrete GPU", "backend": "torch",
            "driver": torch.cuda.get_device_name(0), "counted": "compute", "submissions": 1, "synthetic": 0}
    with open(sys.argv[1], "w", newline="") as out:
        rows = csv.DictWriter(out, COLUMNS, restval="")
        rows.writeheader()
        for op, kind, size, elements, bytes_, flops, run in operations():
            first, taken = sample(run, seconds)
            rows.writerow(same | {"op": op, "type": kind, "size": size, "elements": elements, "bytes": bytes_, "flops": flops, "samples": len(taken),
                                  "median_ns": int(statistics.median(taken)), "p90_ns": taken[-(-9 * len(taken) // 10) - 1], "min_ns": taken[0],
                                  "max_ns": taken[-1], "first_ns": first})


main()
