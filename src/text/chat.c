/* Chat templates of a checkpoint: where they are found, and what they are rendered with. */
#include "base/error.h"
#include "base/file.h"
#include "text/chat.h"
#include "text/special_tokens.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- finding them ---- */

static ferry_status add_template(ferry_chat *chat, const char *name, TemplateName place,
                                 const char *text, size_t length, ferry_error *error) {
    ChatTemplate t = {.name = arena_string(&chat->arena, name)};
    TRY(template_parse(place, &chat->arena, text, length, &t.template, error));
    for (size_t i = 0; i < chat->templates.count; i++) {
        if (strcmp(chat->templates.items[i].name, name) != 0) continue;
        chat->templates.items[i] = t;
        return FERRY_OK;
    }
    VEC_PUSH(&chat->templates, t);
    return FERRY_OK;
}

static ferry_status read_template(ferry_chat *chat, const char *path, const char *name,
                                  ferry_error *error) {
    MappedFile file;
    TRY(file_map(path, &chat->arena, &file, error));
    ferry_status status = add_template(chat, name, (TemplateName){file.path, NULL},
                                       file.size ? (const char *)file.bytes : "", file.size, error);
    file_unmap(&file);
    return status;
}

/* chat_templates/NAME.jinja */
static ferry_status read_more_templates(ferry_chat *chat, const char *directory,
                                        ferry_error *error) {
    const char *path = path_join(&chat->arena, directory, "chat_templates");
    DIR *folder = opendir(path);
    ferry_status status = FERRY_OK;
    if (!folder)
        return errno == ENOENT || errno == ENOTDIR ? FERRY_OK
                                                   : error_errno(error, path, "cannot be read");
    for (struct dirent *entry; status == FERRY_OK && (entry = readdir(folder));) {
        size_t length = strlen(entry->d_name);
        if (length <= 6 || strcmp(entry->d_name + length - 6, ".jinja") != 0) continue;
        const char *name = arena_string_n(&chat->arena, entry->d_name, length - 6);
        status = read_template(chat, path_join(&chat->arena, path, entry->d_name), name, error);
    }
    closedir(folder);
    return status;
}

/* "chat_template" of tokenizer_config.json or chat_template.json: a text, or a list with names. */
static ferry_status read_config_templates(ferry_chat *chat, const char *path, const json_t *config,
                                          ferry_error *error) {
    const json_t *found = json_object_get(config, "chat_template");
    TemplateName place = {path, "\"chat_template\""};
    size_t i;
    json_t *item;
    if (!found || json_is_null(found)) return FERRY_OK;
    if (json_is_string(found))
        return add_template(chat, "default", place, json_string_value(found),
                            json_string_length(found), error);
    if (!json_is_array(found))
        return error_set(error, FERRY_BAD_FORMAT, path,
                         "\"chat_template\" is %s; expected a string, or a list of named templates",
                         json_kind(found));
    json_array_foreach((json_t *)found, i, item) {
        const json_t *name = json_object_get(item, "name"),
                     *text = json_object_get(item, "template");
        if (!json_is_string(name) || !json_is_string(text))
            return error_set(error, FERRY_BAD_FORMAT, path,
                             "\"chat_template\"[%zu] lacks a \"name\" or a \"template\"", i);
        place.part =
            arena_format(&chat->arena, "\"chat_template\" \"%s\"", json_string_value(name));
        TRY(add_template(chat, json_string_value(name), place, json_string_value(text),
                         json_string_length(text), error));
    }
    return FERRY_OK;
}

/* ---- opening ---- */

static ferry_status read_legacy_template(ferry_chat *chat, const char *directory,
                                         ferry_error *error) {
    const char *path = path_join(&chat->arena, directory, "chat_template.json");
    json_t *config;
    if (!path_exists(path)) return FERRY_OK;
    TRY(json_read_texts(path, &config, error));
    ferry_status status = read_config_templates(chat, path, config, error);
    json_decref(config);
    return status;
}

static ferry_status read_tokenizer_config(ferry_chat *chat, const char *directory,
                                          ferry_error *error) {
    json_t *config;
    ferry_status status = special_tokens_read(directory, &chat->tokens, &config, error);
    const char *path = path_is_directory(directory)
                           ? path_join(&chat->arena, directory, "tokenizer_config.json")
                           : chat->path;
    if (status == FERRY_OK && config) status = read_config_templates(chat, path, config, error);
    json_decref(config);
    return status;
}

static ferry_status read_directory(ferry_chat *chat, const char *path, ferry_error *error) {
    TRY(read_tokenizer_config(chat, path, error));
    TRY(read_legacy_template(chat, path, error));
    const char *file = path_join(&chat->arena, path, "chat_template.jinja");
    if (path_exists(file)) TRY(read_template(chat, file, "default", error));
    TRY(read_more_templates(chat, path, error));
    if (chat->templates.count == 0)
        return error_set(
            error, FERRY_NOT_FOUND, path,
            "has no chat template: no chat_template.jinja, and no \"chat_template\" in "
            "tokenizer_config.json; is this a model for chats?");
    return FERRY_OK;
}

ferry_status ferry_chat_open(const char *path, ferry_chat **out, ferry_error *error) {
    error_clear(error);
    *out = NULL;
    ferry_chat *chat = calloc(1, sizeof *chat);
    if (!chat) return error_memory(error, path, sizeof *chat);
    chat->path = arena_string(&chat->arena, path);
    ferry_status status = read_directory(chat, path, error);
    if (status == FERRY_OK && (chat->arena.failed || chat->templates.failed))
        status = error_memory(error, path, 0);
    if (status == FERRY_OK)
        *out = chat;
    else
        ferry_chat_close(chat);
    return status;
}

void ferry_chat_close(ferry_chat *chat) {
    if (!chat) return;
    json_decref(chat->tokens);
    VEC_FREE(&chat->templates);
    arena_free(&chat->arena);
    free(chat);
}

const char *ferry_chat_template_at(const ferry_chat *chat, size_t index) {
    return index < chat->templates.count ? chat->templates.items[index].name : NULL;
}

const char *ferry_chat_token(const ferry_chat *chat, const char *name) {
    return json_string_value(json_object_get(chat->tokens, name));
}

/* ---- rendering ---- */

void ferry_chat_config_init(ferry_chat_config *config) {
    *config = (ferry_chat_config){.size = sizeof *config, .add_generation_prompt = true};
}

/* A copy of a message as Transformers prepares it: nothing that is null; what the assistant thought under
 * all the names that templates look for. */
static json_t *prepare_message(const json_t *message) {
    static const char *const names[] = {"reasoning_content", "thinking", "reasoning"};
    json_t *copy = json_object(), *reasoning = NULL, *value;
    const char *name;
    for (size_t i = 0; i < sizeof names / sizeof *names && !reasoning; i++) {
        value = json_object_get(message, names[i]);
        if (value && !json_is_null(value)) reasoning = value;
    }
    if (reasoning) json_object_set(copy, "thinking", reasoning);
    json_object_foreach((json_t *)message, name, value) {
        if (!json_is_null(value)) json_object_set(copy, name, value);
    }
    if (reasoning) json_object_set(copy, "reasoning_content", reasoning);
    return copy;
}

static ferry_status prepare_messages(json_t *variables, const json_t *messages,
                                     ferry_error *error) {
    size_t i;
    json_t *message, *list = json_array();
    json_object_set_new(variables, "messages", list);
    if (!json_is_array(messages) || json_array_size(messages) == 0)
        return error_set(error, FERRY_INVALID_ARGUMENT, "messages",
                         "expected a list of messages, found %s",
                         json_is_array(messages) ? "an empty one" : json_kind(messages));
    json_array_foreach((json_t *)messages, i, message) {
        if (!json_is_object(message))
            return error_set(error, FERRY_INVALID_ARGUMENT, "messages",
                             "message %zu is %s; expected an object with \"role\" and \"content\"",
                             i, json_kind(message));
        json_array_append_new(list, prepare_message(message));
    }
    return FERRY_OK;
}

static ferry_status parse_argument(const char *what, const char *text, json_t **out,
                                   ferry_error *error) {
    ferry_status status = json_parse(what, text, strlen(text), out, error);
    if (status == FERRY_BAD_FORMAT && error) error->status = status = FERRY_INVALID_ARGUMENT;
    return status;
}

static ferry_status add_tools(json_t *variables, const char *text, ferry_error *error) {
    json_t *tools = json_null();
    if (text) TRY(parse_argument("tools", text, &tools, error));
    json_object_set_new(variables, "tools", tools);
    if (text && !json_is_array(tools))
        return error_set(error, FERRY_INVALID_ARGUMENT, "tools",
                         "expected a list of tools, found %s", json_kind(tools));
    return FERRY_OK;
}

static ferry_status add_variables(json_t *variables, const char *text, ferry_error *error) {
    json_t *more;
    if (!text) return FERRY_OK;
    TRY(parse_argument("variables", text, &more, error));
    ferry_status status = FERRY_OK;
    if (json_is_object(more))
        json_object_update(variables, more);
    else
        status = error_set(error, FERRY_INVALID_ARGUMENT, "variables",
                           "expected an object of names and values, found %s", json_kind(more));
    json_decref(more);
    return status;
}

static const Template *find_template(const ferry_chat *chat, const char *name) {
    for (size_t i = 0; i < chat->templates.count; i++)
        if (strcmp(chat->templates.items[i].name, name) == 0)
            return chat->templates.items[i].template;
    return NULL;
}

/* The one that is asked for; else the one for tools, when there are any; else the default one. */
static ferry_status choose_template(const ferry_chat *chat, const ferry_chat_config *config,
                                    const Template **out, ferry_error *error) {
    const char *name = config->template_name;
    *out = name ? find_template(chat, name) : NULL;
    if (!name && config->tools) *out = find_template(chat, "tool_use");
    if (!name && !*out) *out = find_template(chat, "default");
    if (*out) return FERRY_OK;
    Buffer names = {0};
    for (size_t i = 0; i < chat->templates.count; i++)
        buffer_format(&names, "%s%s", i ? ", " : "", chat->templates.items[i].name);
    ferry_status status =
        error_set(error, FERRY_NOT_FOUND, chat->path, "has no chat template \"%s\", but %s",
                  name ? name : "default", buffer_string(&names));
    buffer_free(&names);
    return status;
}

static ferry_status render(const ferry_chat *chat, const json_t *messages,
                           const ferry_chat_config *config, ferry_write write, void *context,
                           ferry_error *error) {
    ferry_chat_config defaults;
    ferry_chat_config_init(&defaults);
    if (config && config->size != sizeof *config)
        return error_set(error, FERRY_INVALID_ARGUMENT, NULL,
                         "the configuration was not initialized");
    if (!config) config = &defaults;
    const Template *template;
    TRY(choose_template(chat, config, &template, error));
    json_t *variables = json_copy(chat->tokens);
    Buffer out = {0};
    json_object_set_new(variables, "add_generation_prompt",
                        json_boolean(config->add_generation_prompt));
    json_object_set_new(variables, "documents", json_null());
    ferry_status status = prepare_messages(variables, messages, error);
    if (status == FERRY_OK) status = add_tools(variables, config->tools, error);
    if (status == FERRY_OK) status = add_variables(variables, config->variables, error);
    if (status == FERRY_OK && !variables) status = error_memory(error, chat->path, 0);
    if (status == FERRY_OK)
        status = template_render(template, variables, TEMPLATE_LIMITS, &out, error);
    if (status == FERRY_OK && out.length) write(context, buffer_string(&out), out.length);
    buffer_free(&out);
    json_decref(variables);
    return status;
}

ferry_status ferry_chat_render(const ferry_chat *chat, const char *messages,
                               const ferry_chat_config *config, ferry_write write, void *context,
                               ferry_error *error) {
    json_t *json;
    error_clear(error);
    TRY(parse_argument("messages", messages, &json, error));
    ferry_status status = render(chat, json, config, write, context, error);
    json_decref(json);
    return status;
}

ferry_status ferry_chat_render_user(const ferry_chat *chat, const char *text, size_t length,
                                    const ferry_chat_config *config, ferry_write write,
                                    void *context, ferry_error *error) {
    error_clear(error);
    json_t *said = json_stringn(text, length);
    if (!said) return error_set(error, FERRY_INVALID_ARGUMENT, NULL, "the message is not UTF-8");
    json_t *messages = json_pack("[{s:s, s:o}]", "role", "user", "content", said);
    ferry_status status = messages ? render(chat, messages, config, write, context, error)
                                   : error_memory(error, chat->path, 0);
    json_decref(messages);
    return status;
}
