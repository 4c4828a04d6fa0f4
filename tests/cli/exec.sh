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
np.save('x.npy', np.arange(100, dtype='<f4')); np.save('y.npy', np.ones(100, '<f4')); np.save('f8.npy', np.ones(100)); np.save('one.npy', np.ones(1, '<f4'))
np.save('twos.npy', np.full(64, 2, '<f4')); np.save('four.npy', np.arange(4, dtype='<f4') * 3)"

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
if has_vulkan; then
    expect 0 - 'binding 2: all 100 are those of the interpreter' $all --groups 2 --device vulkan --check
    expect 0 - 'binding 2: all 100 are' "$heddle" exec axpy.spv --bind '0=random:f32[100]' --bind '1=random:f32[100]' --out 2=f32[100] --push 100,f32:3 --groups 2 --device vulkan --check
fi
cat >twice.comp <<'GLSL'
#version 450
layout(local_size_x = 32) in;
layout(std140, set = 1, binding = 0) uniform U { vec4 by; } u;
layout(std430, set = 0, binding = 3) buffer X { float x[]; };
void main() { x[gl_GlobalInvocationID.x] *= u.by.y; }
GLSL
glsl="$heddle exec twice.comp --bind 0.3=twos.npy --bind 1.0=four.npy --out 0.3=f32[64] --groups 2 --device cpu"
refuse 1 'twice.comp is GLSL, and glslc is not there' env PATH=/nowhere $glsl
if command -v glslc >/dev/null; then
    expect 0 '^0 +f32\[64\] +6 6 6' - $glsl
    sed 's/u.by.y/nowhere/' twice.comp >wrong.comp
    expect 1 - "wrong.comp: line 5: 'nowhere' : undeclared" "$heddle" exec wrong.comp --out 0=f32[1] --groups 1 --device cpu
fi
# An image of bytes, 0, 51 and 255, sampled from the middle of texel 1 of 8 on.
python "
import re, struct
import numpy as np
text = open('$sources/tests/spirv/image_kernels.h').read()
words = [int(w, 0) for w in re.search(r'image_sampled\[\] = \{(.*?)\}', text, re.S).group(1).replace(',', ' ').split()]
open('sampled.spv', 'wb').write(struct.pack('<%dI' % len(words), *words))
np.save('bytes.npy', np.tile(np.array([[0], [51], [255], [0]], 'u1'), (2, 1, 4)).reshape(2, 4, 4))"
sampled="$heddle exec sampled.spv --bind 0=bytes.npy --out 1=f32[32,32,4] --groups 1,1 --device cpu"
expect 0 '^1 +f32\[32,32,4\] ' - $sampled --image 0=u8x4,linear,clamp
expect 0 '^1 +f32\[32,32,4\] ' - $sampled --image 0.0=u8x4
refuse 1 'binding 0 is an image: a tensor of f32 with 2 axes' $sampled
for image in 0=u8x5 0=u8xx 0=linear,,x 0=near x=u8x4; do refuse 2 '--image is INDEX=TYPExCHANNELS' $sampled "--image=$image"; done
refuse 1 'texels of 2 i32 at set 0, binding 0' $sampled --image 0=i32x2

refuse 2 'random data is random:TYPE' $run --bind '2=random:f33[3]' --out 2=f32[100] --groups 2
refuse 2 'the output is missing; add --out 2=f32\[N\]' $run --groups 2
refuse 2 'the number of workgroups is missing' $all
refuse 1 'the kernel has 3 bindings, 0 on, and no binding 3' $run --out 3=f32[100] --push 100,f32:0.5 --groups 2
refuse 2 '--out is INDEX=TYPE' $run --out 2=f33[100] --groups 2
refuse 2 '--out is INDEX=TYPE' $run --out 2=f32[0] --groups 2
refuse 2 '--out is INDEX=TYPE' $run --out '2=f32[1,]' --groups 2
refuse 2 '--out gives binding 2 twice' $all --out 2=f32[1] --groups 2
refuse 2 '--save is INDEX=FILE.npy of an output' $all --groups 2 --save 1=z.npy
refuse 1 'the kernel has no buffer in set 1 at binding 0' $all --bind 1.0=x.npy --groups 2
refuse 1 'binding 1 is given twice' $all --bind 0.1=x.npy --groups 2
refuse 1 'the kernel writes binding 2: it is an output' $run --bind 2=y.npy --out 0=f32[100] --push 100,f32:0.5 --groups 2
refuse 1 'holds 400 bytes and begins with 4' $all --bind 2=one.npy --groups 2
refuse 1 'no entry point "other"' $all --entry other --groups 2
expect 0 '^2 +f32\[100\] +1 1.5 2 2.5' - $all --bind 2=y.npy --groups 2 --entry main --device cpu
expect 0 '^2 +f32\[100\] +1 1.5 2 2.5' - "$heddle" exec axpy.spv --bind 0.0=x.npy --bind 0.1=y.npy --out 0.2=f32[100] --push u32:100,f32:0.5 --groups 2 --device cpu
refuse 1 'the kernel uses binding 0, and nothing is given for it' "$heddle" exec axpy.spv --bind 1=y.npy --out 2=f32[1] --push 1,1 --groups 1
refuse 2 '--bind gives binding 1 twice' $all --bind 1=y.npy --groups 2
refuse 2 '--bind is INDEX=FILE.npy' $all --bind x=y.npy --groups 2
for groups in 0 2,0 1,2,3,4 "1,2,3," x "1,,1" -1 ","; do refuse 2 '--groups is X, X,Y or X,Y,Z' $all --groups=$groups; done
for push in u33:1 u32:-1 u32:4294967296 i32:2147483648 f32:x f32: "u32:1,," ""; do refuse 2 '--push is u32:4' $run --out 2=f32[1] --groups 1 "--push=$push"; done
refuse 2 '--spec is ID=VALUE' $all --groups 2 --spec 64
refuse 1 'the kernel takes 8 bytes of push constants, and --push gives 4' $run --out 2=f32[100] --push u32:1 --groups 2
refuse 1 'the kernel uses binding 2' "$heddle" exec axpy.spv --bind 0=x.npy --bind 1=x.npy --out 0=f32[100] --push 1,1 --groups 1
refuse 1 'binding 0: f8.npy holds f8' "$heddle" exec axpy.spv --bind 0=f8.npy --out 1=f32[1] --groups 1
refuse 1 'nosuch.spv: io: ' "$heddle" exec nosuch.spv --out 0=f32[1] --groups 1
refuse 1 'cut.spv: module: ' "$heddle" exec cut.spv --out 0=f32[1] --groups 1
refuse 1 'x.npy: module: ' "$heddle" exec x.npy --out 0=f32[1] --groups 1
done_here
