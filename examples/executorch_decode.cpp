// Generating text with ExecuTorch and a cache that is updated in place: no copy of it is ever made.
//
//     executorch_decode DIRECTORY LENGTH STEPS TOKEN...
//
// DIRECTORY is an export of a decode step with a static cache, whose memory the caller gives:
//
//     ferry export decode.pt2 --to executorch -o DIRECTORY --no-alloc-graph-input --no-alloc-graph-output
//
// LENGTH is the room of the cache, in tokens. The prompt TOKEN... goes in at once, then STEPS single tokens
// follow, each the likeliest one. Build it with the makefile beside it: `make executorch_decode`.
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>
#include <ferry/ferry.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

using executorch::extension::from_blob;
using executorch::extension::Module;
using executorch::extension::TensorPtr;
using executorch::runtime::EValue;

static void fail(const std::string &message) {
    fprintf(stderr, "executorch_decode: %s\n", message.c_str());
    exit(1);
}

// The names of inputs and outputs, which a .pte does not have: export.json does.
struct Signature {
    ferry_exported *exported = nullptr;

    explicit Signature(const char *directory) {
        ferry_error error;
        if (ferry_exported_load(directory, &exported, &error) != FERRY_OK) fail(error.message);
    }
    ~Signature() {
        ferry_exported_free(exported);
    }

    size_t inputs() const {
        return ferry_exported_input_count(exported);
    }
    size_t outputs() const {
        return ferry_exported_output_count(exported);
    }
    const ferry_port &input(size_t i) const {
        return *ferry_exported_input(exported, i);
    }
    const ferry_port &output(size_t i) const {
        return *ferry_exported_output(exported, i);
    }

    size_t find_input(const std::string &name) const {
        for (size_t i = 0; i < inputs(); i++) {
            if (name == input(i).name) return i;
        }
        fail("the export has no input " + name);
        return 0;
    }
};

static bool is_mask(const ferry_port &port) {
    return strncmp(port.name, "attention_mask", 14) == 0 && port.rank == 4;
}

class Decoder {
  public:
    Decoder(const char *directory, int64_t length)
        : signature(directory), module(std::string(directory) + "/model.pte"), length(length) {
        auto meta = module.method_meta("forward");
        if (!meta.ok()) fail("the program cannot be loaded");
        if (meta->num_inputs() != signature.inputs()) fail("there are constants among the inputs");
        // Memory for the largest sizes, which is what the runtime wants outputs to have room for. Zeros are
        // an empty cache.
        for (size_t i = 0; i < signature.inputs(); i++) {
            memory.emplace_back(meta->input_tensor_meta(i)->nbytes());
        }
        for (size_t i = 0; i < signature.outputs(); i++) bind(i, *meta->output_tensor_meta(i));
    }

    // Run the model on tokens that follow those before, and return the likeliest next one.
    int64_t feed(const std::vector<int64_t> &tokens) {
        fill(tokens);
        std::vector<TensorPtr> tensors;
        std::vector<EValue> inputs;
        for (size_t i = 0; i < signature.inputs(); i++) {
            tensors.push_back(tensor(i, (int64_t)tokens.size()));
            inputs.emplace_back(tensors.back());
        }
        auto outputs = module.execute("forward", inputs);
        if (!outputs.ok()) fail("the program cannot be run");
        past += (int64_t)tokens.size();
        const auto &logits = outputs->at(logits_index).toTensor();
        size_t vocabulary = (size_t)logits.size(2);
        const float *last = logits.const_data_ptr<float>() + (tokens.size() - 1) * vocabulary;
        return std::max_element(last, last + vocabulary) - last;
    }

  private:
    // What the step leaves in a cache goes where the cache is; other outputs get memory of their own.
    void bind(size_t index, const executorch::runtime::TensorInfo &info) {
        const ferry_port &port = signature.output(index);
        if (!port.writes) memory.emplace_back(info.nbytes());
        if (strcmp(port.name, "logits") == 0) logits_index = index;
        auto &place = port.writes ? memory[signature.find_input(port.writes)] : memory.back();
        if (place.size() < info.nbytes()) fail("an output does not fit its input");
        std::vector<int32_t> sizes(info.sizes().begin(), info.sizes().end());
        auto whole = from_blob(place.data(), sizes, info.scalar_type());
        if (module.set_output(whole, index) != executorch::runtime::Error::Ok) {
            fail("the program has memory of its own for its outputs");
        }
    }

    template <typename T> T *data(const char *name) {
        return reinterpret_cast<T *>(memory[signature.find_input(name)].data());
    }

    // Tokens, their positions, and for each which slots of the cache it sees: those up to its own.
    void fill(const std::vector<int64_t> &tokens) {
        for (size_t i = 0; i < tokens.size(); i++) {
            data<int64_t>("input_ids")[i] = tokens[i];
            data<int64_t>("position_ids")[i] = past + (int64_t)i;
        }
        for (size_t i = 0; i < signature.inputs(); i++) {
            if (!is_mask(signature.input(i))) continue;
            auto *mask = reinterpret_cast<bool *>(memory[i].data());
            for (int64_t row = 0; row < (int64_t)tokens.size(); row++) {
                for (int64_t slot = 0; slot < length; slot++) *mask++ = slot <= past + row;
            }
        }
    }

    // Input `index` with the sizes of this step, over the memory that stays.
    TensorPtr tensor(size_t index, int64_t count) {
        std::map<std::string, int64_t> known;
        for (size_t i = 0; i < signature.inputs(); i++) {
            const ferry_port &port = signature.input(i);
            if (is_mask(port)) known[port.shape[3]] = length;
        }
        const ferry_port &ids = signature.input(signature.find_input("input_ids"));
        known[ids.shape[0]] = 1;
        known[ids.shape[1]] = count;
        const ferry_port &port = signature.input(index);
        std::vector<int32_t> sizes;
        for (size_t d = 0; d < port.rank; d++) {
            auto found = known.find(port.shape[d]);
            sizes.push_back(found == known.end() ? atoi(port.shape[d]) : (int32_t)found->second);
        }
        auto type = module.method_meta("forward")->input_tensor_meta(index)->scalar_type();
        return from_blob(memory[index].data(), sizes, type);
    }

    Signature signature;
    Module module;
    std::vector<std::vector<uint8_t>> memory; // of the inputs, then of outputs that are no cache
    int64_t length, past = 0;
    size_t logits_index = 0;
};

int main(int argc, char **argv) {
    if (argc < 5) fail("expected DIRECTORY LENGTH STEPS TOKEN...");
    int64_t length = atoll(argv[2]), steps = atoll(argv[3]);
    std::vector<int64_t> prompt;
    for (int i = 4; i < argc; i++) prompt.push_back(atoll(argv[i]));
    if ((int64_t)prompt.size() + steps > length)
        fail("the cache is too short for that many tokens");

    Decoder decoder(argv[1], length);
    int64_t next = decoder.feed(prompt);
    for (int64_t i = 0; i < steps; i++) {
        printf("%lld ", (long long)next);
        next = decoder.feed({next});
    }
    printf("%lld\n", (long long)next);
}
