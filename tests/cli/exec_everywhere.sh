# exec_everywhere.sh: kernels as users write them (tests/spirv/user_kernels.py) through `heddle exec`, on every back end that
# is here: Mandelbrot, a histogram with atomics in shared memory, a step of n bodies; each against NumPy.
. "$2/tests/cli/lib.sh"
needs_numpy
[ -d "$standin" ] && export LD_LIBRARY_PATH="$standin" HEDDLE_VERIFY=0

python "
import re, struct
import numpy as np
text = open('$sources/tests/spirv/user_kernels.h').read()
for name in ('mandelbrot', 'histogram', 'bodies'):
    words = [int(w, 0) for w in re.search(r'kernel_%s_fast\[\] = \{(.*?)\}' % name, text, re.S).group(1).replace(',', ' ').split()]
    open(name + '.spv', 'wb').write(struct.pack('<%dI' % len(words), *words))
random = np.random.default_rng(1)
np.save('unused.npy', np.zeros(4, '<i4'))
np.save('data.npy', random.integers(0, 2**31, 3000).astype('<i4'))
bodies = random.uniform(-1, 1, (50, 8)).astype('<f4')
np.save('bodies.npy', bodies)"

# judge BACKEND: what the three gave is what NumPy computes.
judge() {
    python "
import numpy as np
y, x = np.mgrid[0:64, 0:64].astype('f4')
cx, cy = x * np.float32(3 / 64) - np.float32(2.25), y * np.float32(3 / 64) - np.float32(1.5)
zx, zy, counts, inside = np.zeros_like(cx), np.zeros_like(cx), np.zeros((64, 64), int), np.ones((64, 64), bool)
for i in range(200):
    with np.errstate(all='ignore'):
        zx, zy = zx * zx - zy * zy + cx, np.float32(2) * zx * zy + cy
        inside &= ~(zx * zx + zy * zy > 4)
    counts[inside] += 1
assert (np.load('$1-mandelbrot.npy').reshape(64, 64) == counts).all(), 'mandelbrot'

bins = np.load('$1-histogram.npy')
assert (bins[:16] == np.bincount(np.load('data.npy') & 15, minlength=16)).all(), 'histogram'
assert bins[18] == 7 and bins[19] == 77 and not bins[20:].any(), 'histogram, atomics on the buffer'

b = np.load('bodies.npy').astype('f8')
d = b[None, :, :3] - b[:, None, :3]
r = 1 / np.sqrt((d * d).sum(2) + 0.01)
speed = b[:, 4:7] + 0.01 * (d * (b[None, :, 3] * r**3)[:, :, None]).sum(1)
moved = np.load('$1-bodies.npy').reshape(64, 8)
assert abs(moved[:50, 4:7] - speed).max() < 1e-3, 'speeds of bodies'
assert abs(moved[:50, :3] - (b[:, :3] + 0.01 * speed)).max() < 1e-4, 'places of bodies'
assert (moved[:50, 3] == np.load('bodies.npy')[:, 3]).all(), 'masses of bodies'"
}

ran=
for backend in vulkan opencl cuda hip levelzero webgpu cpu; do
    HEDDLE_BACKEND=$backend "$heddle" devices 2>/dev/null | grep -q "$backend:" || continue
    run="$heddle exec --device $backend"
    expect 0 - - $run mandelbrot.spv --bind 0=unused.npy --out '1=i32[4096]' --push 64,200 --groups 8,8 --save 1=$backend-mandelbrot.npy
    expect 0 - - $run histogram.spv --bind 0=data.npy --out '1=i32[32]' --push 3000,192 --groups 3 --save 1=$backend-histogram.npy
    expect 0 - - $run bodies.spv --bind 0=bodies.npy --out '1=f32[512]' --push 50,f32:0.01 --groups 2 --save 1=$backend-bodies.npy
    judge $backend
    # What has whole numbers is the same on every device, bit by bit.
    for name in mandelbrot histogram; do
        [ -z "$ran" ] || cmp -s "$backend-$name.npy" "${ran%% *}-$name.npy" || fail "$name differs between $backend and ${ran%% *}"
    done
    ran="$ran${ran:+ }$backend"
done
echo "the same on: $ran"
done_here
