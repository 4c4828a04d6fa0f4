# facts.sh: what `heddle devices --caps` tells of a device is, field by field, what vulkaninfo and clinfo tell of it, where these are
# there: limits, sizes, types in memory and in registers, subgroups, the kind of device and its driver.
. "$2/tests/cli/lib.sh"
command -v vulkaninfo >/dev/null || command -v clinfo >/dev/null || { echo "neither vulkaninfo nor clinfo is there"; exit 77; }
"$python3" -c '' 2>/dev/null || { echo "python3 is not there"; exit 77; }
"$heddle" devices --json >devices 2>err || fail "devices --json: $(cat err)"
"$heddle" devices --caps vulkan >vulkan 2>/dev/null || rm vulkan
"$heddle" devices --caps opencl >opencl 2>/dev/null || rm opencl
vulkaninfo >vulkaninfo 2>/dev/null || rm -f vulkaninfo
clinfo --raw >clinfo 2>/dev/null || rm -f clinfo
cat >compare.py <<'END'
import json, os, re

wrong = compared = 0
devices = json.load(open("devices"))["devices"]

def read(name):
    return open(name, errors="replace").read() if os.path.exists(name) else ""

def caps(back_end):
    return dict(line.split(" ", 1) for line in read(back_end).splitlines())

def judge(back_end, tool, has, wanted, share=0):
    """`has` against {field: value}; memory may have been taken meanwhile."""
    global wrong, compared
    for field, value in wanted.items():
        compared += 1
        own = has[field] if isinstance(value, str) else int(has[field])
        same = own == value if not share or field not in ("memory_bytes", "host_bytes") else abs(own - value) <= share * value
        if not same:
            wrong += 1
            print("%s: %s is %s, and %s says %s" % (back_end, field, own, tool, value))

# ---- Vulkan: one device, as lib.sh has it ----
info, has = read("vulkaninfo"), caps("vulkan")

def value(name):
    """Of a line "name = value"; 0 where there is none."""
    found = re.search(r"^\s*%s\s*= (.*)$" % name, info, re.M)
    text = found.group(1).strip() if found else "0"
    return {"true": 1, "false": 0}[text] if text in ("true", "false") else int(text, 0) if re.fullmatch(r"0x[0-9a-f]+|\d+", text) else text

def three(name):
    return [int(word) for word in re.search(r"%s: count = 3\s+(\d+)\s+(\d+)\s+(\d+)" % name, info).groups()]

if info and has:
    heaps = [int(size) for size in re.findall(r"^\s+size\s+= (\d+) ", info, re.M)]
    groups = three("maxComputeWorkGroupCount")
    judge("vulkan", "vulkaninfo", has, {
        "name": value("deviceName"),
        "memory_bytes": max(heaps),
        "max_allocation_bytes": min(value("maxMemoryAllocationSize"), value("maxBufferSize") or 2 ** 64),
        "max_binding_bytes": value("maxStorageBufferRange"),
        "binding_align": max(value("minStorageBufferOffsetAlignment"), 4),
        "max_push_bytes": min(value("maxPushConstantsSize"), 128), # heddle's kernels have no more
        "max_workgroup": value("maxComputeWorkGroupInvocations"),
        "max_workgroup_x": three("maxComputeWorkGroupSize")[0],
        "max_groups_x": groups[0], "max_groups_y": groups[1], "max_groups_z": groups[2],
        "shared_bytes": value("maxComputeSharedMemorySize"),
        "subgroup": value("subgroupSize"),
        "subgroup_arithmetic": int("SUBGROUP_FEATURE_ARITHMETIC_BIT" in info),
        "subgroup_shuffle": int("SUBGROUP_FEATURE_SHUFFLE_BIT" in info),
        "subgroup_control": value("subgroupSizeControl"),
        "f16_storage": value("storageBuffer16BitAccess"),
        "u8_storage": value("storageBuffer8BitAccess"),
        "f16_arithmetic": value("shaderFloat16"),
        "i8_arithmetic": value("shaderInt8"),
        "integer_dot": value("shaderIntegerDotProduct") & value("integerDotProduct4x8BitPackedSignedAccelerated"),
        "memory_model": value("vulkanMemoryModel") & value("vulkanMemoryModelDeviceScope"),
        "timestamps": int(value("timestampValidBits") != 0),
        "software": int(value("deviceType") == "PHYSICAL_DEVICE_TYPE_CPU"),
    })
    own = next(device for device in devices if device["backend"] == "vulkan")
    judge("vulkan", "vulkaninfo", own, {"name": value("deviceName"), "driver": "%s %s" % (value("driverName"), value("driverInfo"))})

# ---- OpenCL: the first device of that name ----
info, has = read("clinfo"), caps("opencl")
if info and has:
    parts = [dict(re.findall(r"^\[\S+\]\s+(CL_\w+)[ \t]+(.*)$", part, re.M)) for part in info.split("CL_DEVICE_NAME ")[1:]]
    names = [part.split("\n")[0].strip() for part in info.split("CL_DEVICE_NAME ")[1:]]
    of = parts[names.index(has["name"])] if has["name"] in names else {}
    number = lambda name: {"CL_TRUE": 1, "CL_FALSE": 0}.get(of[name].strip(), None) if of[name].startswith("CL_") else int(of[name].split()[0], 0)
    if not of:
        wrong += 1
        print("opencl: clinfo knows no %s" % has["name"])
    else:
        judge("opencl", "clinfo", has, {
            "memory_bytes": number("CL_DEVICE_GLOBAL_MEM_SIZE"),
            "max_allocation_bytes": number("CL_DEVICE_MAX_MEM_ALLOC_SIZE"),
            "max_workgroup": number("CL_DEVICE_MAX_WORK_GROUP_SIZE"),
            "max_workgroup_x": number("CL_DEVICE_MAX_WORK_ITEM_SIZES"),
            "shared_bytes": number("CL_DEVICE_LOCAL_MEM_SIZE"),
            "compute_units": number("CL_DEVICE_MAX_COMPUTE_UNITS"),
            "f16_arithmetic": int("cl_khr_fp16" in of["CL_DEVICE_EXTENSIONS"].split()),
            "software": int("CL_DEVICE_TYPE_CPU" in of["CL_DEVICE_TYPE"]),
        }, 0.25)
        own = next(device for device in devices if device["backend"] == "opencl")
        judge("opencl", "clinfo", own, {"driver": of["CL_DEVICE_VERSION"].strip()})

print("%d fields" % compared)
raise SystemExit(wrong != 0)
END
"$python3" compare.py >compared 2>&1 || fail "the facts of a device are not what other tools tell: $(cat compared)"
cat compared
grep -q '^[1-9]' compared || { [ -e vulkaninfo ] && [ -e vulkan ] && fail "nothing was compared"; }
done_here
