#!/usr/bin/env python3
"""export.py FOLDER WEIGHTS.npz OUT.gguf [F32|F16|Q8_0]: third step to the demo model: the weights of train.py and the vocabulary
of prepare.py as a GGUF file, in Q8_0 unless another type is named. pip install gguf numpy."""
import json, pathlib, sys
import gguf, numpy
from prepare import END
from train import CONTEXT, EPSILON, FFN, HEADS, HEAD_SIZE, HIDDEN, KV_HEADS, THETA

FILE_TYPES = {"F32": gguf.LlamaFileType.ALL_F32, "F16": gguf.LlamaFileType.MOSTLY_F16, "Q8_0": gguf.LlamaFileType.MOSTLY_Q8_0}

def write_tokenizer(w, path):
    model = json.loads(path.read_text())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("gpt-2")
    w.add_token_list(tokens)
    w.add_token_types([gguf.TokenType.CONTROL if token == END else gguf.TokenType.NORMAL for token in tokens])
    w.add_token_merges([" ".join(merge) for merge in model["merges"]])
    w.add_bos_token_id(tokens.index(END))
    w.add_eos_token_id(tokens.index(END))
    w.add_add_bos_token(False)

def main():
    folder, weights, out, kind = pathlib.Path(sys.argv[1]), numpy.load(sys.argv[2]), sys.argv[3], (sys.argv[4:] or ["Q8_0"])[0]
    w = gguf.GGUFWriter(out, "qwen3")
    w.add_type("model")
    w.add_name("heddle demo")
    w.add_description("A small decoder trained on the King James Bible and Jane Austen's novels")
    w.add_license("public domain text; weights CC0")
    w.add_languages(["en"])
    w.add_file_type(FILE_TYPES[kind])
    w.add_quantization_version(gguf.GGML_QUANT_VERSION)
    w.add_block_count(len({name.split(".")[1] for name in weights if name.startswith("blk.")}))
    w.add_context_length(CONTEXT)
    w.add_embedding_length(HIDDEN)
    w.add_feed_forward_length(FFN)
    w.add_head_count(HEADS)
    w.add_head_count_kv(KV_HEADS)
    w.add_key_length(HEAD_SIZE)
    w.add_value_length(HEAD_SIZE)
    w.add_rope_freq_base(THETA)
    w.add_layer_norm_rms_eps(EPSILON)
    write_tokenizer(w, folder / "tokenizer.json")
    for name, values in weights.items():
        stored = gguf.GGMLQuantizationType[kind if values.ndim == 2 else "F32"]
        w.add_tensor(name, gguf.quants.quantize(values, stored), raw_dtype=stored)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()

if __name__ == "__main__":
    main()
