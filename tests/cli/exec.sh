# exec.sh: launching a kernel: the module of examples/04_custom_kernel.c, z = a x + y with 64 elements a workgroup.
. "$2/tests/cli/lib.sh"
needs_numpy

python "
import re, struct
import numpy as np
text = open('$sources/examples/04_custom_kernel.c').read()
words = [int(w, 0) for w in re.search(r'axpy\[\] = \{(.*?)\}', text, re.S).group(1).replace(',', ' ').split()]
open('axpy.spv', 'wb').write(struct.pack('<%dI' % len(words), *words))
open('cut.spv', 'wb').write(open('axpy.spv', 'rb').read()[:-8])
np.save('x.npy', np.arange(100, dtype='<f4')); np.save('y.npy', np.ones(100, '<f4')); np.save('f8.npy', np.ones(100))"

run="$heddle exec axpy.spv --bind 0=x.npy --bind 1=y.npy"
all="$run --out 2=f32[100] --push u32:100,f32:0.5"
if has_vulkan; then
    expect 0 '^2 +f32\[100\] +1 1.5 2 2.5 .* -> z.npy' 'warning="a software driver' $all --groups 2,1,1 --save 2=z.npy --device vulkan
    python '
import numpy as np
assert (np.load("z.npy") == np.load("x.npy") * np.float32(0.5) + 1).all()'
    expect 0 '"submissions": 3' - $all --groups 2 --device vulkan --repeat 3 --json
fi
expect 0 '^2 +f32\[100\] +1 1.5 2 2.5 .* -> cpu.npy' - $all --groups 2,1,1 --save 2=cpu.npy --device cpu
python '
import numpy as np
assert (np.load("cpu.npy") == np.load("x.npy") * np.float32(0.5) + 1).all()'
refuse 2 'the output is missing; add --out 2=f32\[N\]' $run --groups 2
refuse 2 'the number of workgroups is missing' $all
refuse 2 'the output is the last binding: --out 2=f32\[100\]' $run --out 3=f32[100] --groups 2
refuse 2 '--out is INDEX=TYPE' $run --out 2=f33[100] --groups 2
refuse 2 '--out is INDEX=TYPE' $run --out 2=f32[0] --groups 2
refuse 2 '--out is INDEX=TYPE' $run --out '2=f32[1,]' --groups 2
refuse 2 'a launch has one output' $all --out 3=f32[1] --groups 2
refuse 2 '--save is 2=FILE.npy' $all --groups 2 --save 1=z.npy
refuse 2 'binding 0 has no file; add --bind 0=FILE.npy' "$heddle" exec axpy.spv --bind 1=y.npy --out 2=f32[1] --groups 1
refuse 2 '--bind gives binding 1 twice' $all --bind 1=y.npy --groups 2
refuse 2 '--bind is INDEX=FILE.npy' $all --bind x=y.npy --groups 2
for groups in 0 2,0 1,2,3,4 "1,2,3," x "1,,1" -1 ","; do refuse 2 '--groups is X, X,Y or X,Y,Z' $all --groups=$groups; done
for push in u33:1 u32:-1 u32:4294967296 i32:2147483648 f32:x f32: "u32:1,," ""; do refuse 2 '--push is u32:4' $run --out 2=f32[1] --groups 1 "--push=$push"; done
refuse 2 '--spec is ID=VALUE' $all --groups 2 --spec 64
refuse 1 'the kernel takes 8 bytes of push constants, and --push gives 4' $run --out 2=f32[100] --push u32:1 --groups 2
refuse 1 'the kernel has 3 bindings, and 1 --bind with one --out make 2' "$heddle" exec axpy.spv --bind 0=x.npy --out 1=f32[1] --groups 1
refuse 1 'binding 0: f8.npy holds f8' "$heddle" exec axpy.spv --bind 0=f8.npy --out 1=f32[1] --groups 1
refuse 1 'nosuch.spv: io: ' "$heddle" exec nosuch.spv --out 0=f32[1] --groups 1
refuse 1 'cut.spv: module: ' "$heddle" exec cut.spv --out 0=f32[1] --groups 1
refuse 1 'x.npy: module: ' "$heddle" exec x.npy --out 0=f32[1] --groups 1
done_here
