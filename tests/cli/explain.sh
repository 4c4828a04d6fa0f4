# explain.sh: explaining for a device that is here, and for one that is told of.
. "$2/tests/cli/lib.sh"

printf 'heddle 1\nv1 = input f32[64] "x"\nv2 = relu v1\nv3 = scale v2 factor=2 bias=0\noutput v3 "y"\n' >p.hd
expect 0 ' because ' 'selected=cpu' "$heddle" explain p.hd
for part in program plan cmds device; do matches out "^$part" "explain: $part"; done
expect 0 'math exact' - "$heddle" explain p.hd --math exact
"$heddle" devices --caps cpu >cpu.caps
sed 's/^name .*/name another machine/' cpu.caps >other.caps
expect 0 ' because ' "" "$heddle" explain p.hd --caps other.caps
has_vulkan && expect 0 '^device vulkan' 'warning=' "$heddle" explain p.hd --device vulkan
if has_vulkan; then
    expect 0 '^segment 1 on cpu: v3 scale$' - "$heddle" explain p.hd --device vulkan --route scale=cpu
    matches out '^  takes v2 f32\[64\] of segment 0: 256 bytes cross$' "what crosses"
    matches out '^device cpu' "both devices"
    expect 0 '^v3 scale \(elementwise word\): on [^ ]+: .* because ' - "$heddle" explain p.hd --device vulkan --route auto
fi

refuse 2 '--caps and --save exclude each other' "$heddle" explain p.hd --caps cpu.caps --save p.plan
refuse 1 '/nosuch/p.plan cannot be written' "$heddle" explain p.hd --save /nosuch/p.plan
refuse 2 '--caps and --device exclude each other' "$heddle" explain p.hd --caps cpu.caps --device cpu
refuse 2 '--caps and --route exclude each other' "$heddle" explain p.hd --caps cpu.caps --route cpu
refuse 1 'nosuch.caps cannot be read' "$heddle" explain p.hd --caps nosuch.caps
refuse 1 'parse: line 1' "$heddle" explain p.hd --caps p.hd
# Bindings that see next to nothing would ask for millions of launches.
sed 's/^max_binding_bytes .*/max_binding_bytes 7857/; s/^native_kernels .*/native_kernels 0/' cpu.caps >tiny.caps
printf 'heddle 1\nv1 = input f32[9511,333] "x"\nv2 = permute v1 axes=[1,0]\nv3 = copy v2\noutput v3 "y"\n' >turn.hd
refuse 1 'limit: one operation takes more than 65536 launches' "$heddle" explain turn.hd --caps tiny.caps
refuse 1 'nosuch.hd cannot be read' "$heddle" explain nosuch.hd
refuse 1 'no device is called "nosuch"' "$heddle" explain p.hd --device nosuch
refuse 1 'p.hd/ cannot be read|p.hd/ ' "$heddle" explain p.hd/
refuse 1 '\. cannot be read: Is a directory' "$heddle" explain .
done_here
