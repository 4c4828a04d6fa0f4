/* chat_builtin.c: heddle's own templates, for models whose file has none and for those whose own cannot run. Each
 * writes the form that models of this family were trained on, for the roles system, user and assistant; qwen's also
 * for tools and their calls. */
#include "llm/chat.h"

static const struct { const char *name, *text;
} templates[] = {
    { "bitnet", "{{ bos_token }}"
                "{% for message in messages %}"
                "{{ message.role | capitalize ~ ': ' ~ message.content | trim ~ '<|eot_id|>' }}"
                "{% endfor %}"
                "{% if add_generation_prompt %}{{ 'Assistant: ' }}{% endif %}" },
    { "chatml", "{% for message in messages %}"
                "{{ '<|im_start|>' ~ message.role ~ '\\n' ~ message.content ~ '<|im_end|>\\n' }}"
                "{% endfor %}"
                "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}" },
    { "gemma", "{{ bos_token }}{% set first = '' %}"
               "{% if messages and messages[0].role == 'system' %}"
               "{% set first = messages[0].content | trim ~ '\\n\\n' %}{% set messages = messages[1:] %}{% endif %}"
               "{% for message in messages %}"
               "{{ '<start_of_turn>' ~ ('model' if message.role == 'assistant' else message.role) ~ '\\n' }}"
               "{{ (first if loop.first else '') ~ message.content | trim ~ '<end_of_turn>\\n' }}"
               "{% endfor %}"
               "{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}" },
    { "llama2", "{% set first = '' %}"
                "{% if messages and messages[0].role == 'system' %}"
                "{% set first = '<<SYS>>\\n' ~ messages[0].content ~ '\\n<</SYS>>\\n\\n' %}{% set messages = "
                "messages[1:] %}{% endif %}"
                "{% for message in messages %}"
                "{% if message.role == 'assistant' %}{{ ' ' ~ message.content | trim ~ ' ' ~ eos_token }}"
                "{% else %}{{ bos_token ~ '[INST] ' ~ (first if loop.first else '') ~ message.content | trim ~ ' "
                "[/INST]' }}{% endif %}"
                "{% endfor %}" },
    { "llama3",
      "{{ bos_token }}"
      "{% for message in messages %}"
      "{{ '<|start_header_id|>' ~ message.role ~ '<|end_header_id|>\\n\\n' ~ message.content | trim ~ '<|eot_id|>' }}"
      "{% endfor %}"
      "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}" },
    { "mistral", "{{ bos_token }}{% set first = '' %}"
                 "{% if messages and messages[0].role == 'system' %}"
                 "{% set first = messages[0].content ~ '\\n\\n' %}{% set messages = messages[1:] %}{% endif %}"
                 "{% for message in messages %}"
                 "{% if message.role == 'assistant' %}{{ ' ' ~ message.content | trim ~ eos_token }}"
                 "{% else %}{{ '[INST] ' ~ (first if loop.first else '') ~ message.content ~ ' [/INST]' }}{% endif %}"
                 "{% endfor %}" },
    { "phi3", "{% for message in messages %}"
              "{{ '<|' ~ message.role ~ '|>\\n' ~ message.content ~ '<|end|>\\n' }}"
              "{% endfor %}"
              "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}" },
    { "qwen", /* as chatml, with tools, and without the thoughts behind earlier answers */
      "{% set first = messages[0].content if messages and messages[0].role == 'system' else '' %}"
      "{% if tools %}"
      "{{ '<|im_start|>system\\n' ~ (first ~ '\\n\\n' if first else '') }}"
      "{{ '# Tools\\n\\nYou may call one or more functions to assist with the user query.\\n\\n' }}"
      "{{ 'You are provided with function signatures within <tools></tools> XML tags:\\n<tools>' }}"
      "{% for tool in tools %}{{ '\\n' ~ tool | tojson }}{% endfor %}"
      "{{ '\\n</tools>\\n\\nFor each function call, return a json object with function name and arguments' }}"
      "{{ ' within <tool_call></tool_call> XML tags:\\n<tool_call>\\n' }}"
      "{{ '{\"name\": <function-name>, \"arguments\": <args-json-object>}\\n</tool_call><|im_end|>\\n' }}"
      "{% endif %}"
      "{% for message in messages %}"
      "{% set content = message.content if message.content else '' %}"
      "{% if message.role == 'assistant' and '</think>' in content %}"
      "{% set content = content.split('</think>')[-1].lstrip('\\n') %}{% endif %}"
      "{% if message.role == 'tool' %}"
      "{{ '<|im_start|>user' if loop.first or loop.previtem.role != 'tool' else '' }}"
      "{{ '\\n<tool_response>\\n' ~ content ~ '\\n</tool_response>' }}"
      "{{ '<|im_end|>\\n' if loop.last or loop.nextitem.role != 'tool' else '' }}"
      "{% elif not (tools and loop.first and message.role == 'system') %}"
      "{{ '<|im_start|>' ~ message.role ~ '\\n' ~ content }}"
      "{% for call in message.tool_calls or [] %}"
      "{{ '\\n' if content or not loop.first else '' }}"
      "{{ '<tool_call>\\n{\"name\": ' ~ call.function.name | tojson ~ ', \"arguments\": ' }}"
      "{{ call.function.arguments | tojson ~ '}\\n</tool_call>' }}"
      "{% endfor %}"
      "{{ '<|im_end|>\\n' }}"
      "{% endif %}"
      "{% endfor %}"
      "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}"
      "{% if enable_thinking is defined and not enable_thinking %}{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}{% "
      "endif %}" },
};

const char *hdl_chat_template(const char *name) {
    for (size_t i = 0; name && i < sizeof templates / sizeof templates[0]; i++)
        if (strcmp(name, templates[i].name) == 0) return templates[i].text;
    return NULL;
}

const char *hdl_chat_template_name(size_t index) {
    return index < sizeof templates / sizeof templates[0] ? templates[index].name : NULL;
}
