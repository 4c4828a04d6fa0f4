#!/usr/bin/env python3
"""Compares heddle's verdicts on damaged modules with spirv-val's.

Usage: mkdir mutants && HEDDLE_MUTANTS_DIR=mutants build/tests/test_spirv_hostile
       scripts/spirv_val_agreement.py mutants [COUNT] [SPIRV_VAL] > table
Prints how often the two agree and, where they do not, spirv-val's reasons by number. Modules that heddle refuses only
because it does not take the resource (LIMIT, other sets, ...) count as refused.
"""
import collections
import os
import re
import subprocess
import sys

folder = sys.argv[1]
count = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
validator = (sys.argv[3] if len(sys.argv) > 3 else 'spirv-val').split()
table = collections.Counter()
reasons = collections.defaultdict(list)
for name in sorted(os.listdir(folder))[:count]:
    ours = name.split('_')[1] == 'ok'
    run = subprocess.run([*validator, '--target-env', 'vulkan1.3' if 'size_by_id' in name or 'comp.spv' in name else 'vulkan1.1', '--scalar-block-layout',
                          os.path.join(folder, name)], capture_output=True, text=True, errors='replace')
    theirs = run.returncode == 0
    table[ours, theirs] += 1
    if ours and not theirs:
        text = re.sub(r"'[^']*'|\"[^\"]*\"|\d+(\[[^]]*\])?", 'N', (run.stderr or run.stdout or 'crashed').strip().split('\n')[0])
        reasons[text].append(name)

print('of %d modules        spirv-val accepts   spirv-val refuses' % sum(table.values()))
for ours in (True, False):
    print('heddle %s %19d %19d' % ('accepts' if ours else 'refuses', table[ours, True], table[ours, False]))
for text, names in sorted(reasons.items(), key=lambda item: -len(item[1])):
    print('%4d  %s   e.g. %s' % (len(names), text, names[0]))
