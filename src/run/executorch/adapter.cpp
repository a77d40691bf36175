/* libferry_executorch.so: adapter.h on top of the libraries of an ExecuTorch package. Built for the
 * version whose headers it sees; the libraries are loaded before it is (library.c). */
#include "run/executorch/adapter.h"

#include <executorch/extension/data_loader/mmap_data_loader.h>
#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/core/exec_aten/util/tensor_util.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/platform/runtime.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

using executorch::aten::ScalarType;
using executorch::aten::Tensor;
using executorch::aten::TensorImpl;
using executorch::extension::MmapDataLoader;
using namespace executorch::runtime;

/* The package has the library and no header for this. */
namespace executorch::extension::threadpool {
class ThreadPool {
  public:
    bool _unsafe_reset_threadpool(uint32_t threads);
};
ThreadPool *get_threadpool();
} // namespace executorch::extension::threadpool

/* ---- failures ---- */

namespace {

thread_local char message[1024];
thread_local bool logged; /* the runtime has said what is wrong: the message is its */

/* What the runtime would print is the message of the failure that follows; the first line counts. */
void keep_log(et_timestamp_t, et_pal_log_level_t level, const char *, const char *, size_t,
              const char *text, size_t length) {
    if (level != kError && level != kFatal) return;
    if (level == kFatal) fprintf(stderr, "ExecuTorch: %.*s\n", (int)length, text);
    if (logged) return;
    logged = true;
    snprintf(message, sizeof message, "%.*s", (int)length, text);
    for (char *next = message; *next; next++) {
        if (*next < ' ' || *next > '~') *next = '?';
    }
}

int fail(Error error) {
    size_t length = logged ? strlen(message) : 0;
    snprintf(message + length, sizeof message - length, "%s%s (error 0x%x)", length ? ": " : "",
             to_string(error), (unsigned)error);
    return 1;
}

/* The same for every function: what went wrong before does not matter, and nothing is thrown. */
template <typename Function> int guarded(Function function) {
    logged = false;
    message[0] = 0;
    try {
        Error error = function();
        return error == Error::Ok ? 0 : fail(error);
    } catch (const std::exception &exception) {
        snprintf(message, sizeof message, "%s", exception.what());
        return 1;
    }
}

void start_runtime() {
    static const bool started = [] {
        register_pal(PalImpl::create(keep_log, __FILE__));
        runtime_init();
        return true;
    }();
    (void)started;
}

/* A tensor that the runtime is given: its arrays must stay where they are. */
struct Given {
    TensorImpl::SizesType sizes[ET_MAX_RANK];
    TensorImpl::DimOrderType order[ET_MAX_RANK];
    TensorImpl::StridesType strides[ET_MAX_RANK];
    std::unique_ptr<TensorImpl> tensor;
};

} // namespace

/* The parts in the order in which they depend on each other. */
struct EtMethod {
    std::unique_ptr<MmapDataLoader> loader;
    std::unique_ptr<Program> program;
    std::vector<std::vector<uint8_t>> memory, states;
    std::vector<Span<uint8_t>> spans;
    std::unique_ptr<HierarchicalAllocator> planned;
    std::unique_ptr<MemoryAllocator> allocator, scratch;
    std::unique_ptr<MemoryManager> manager;
    std::unique_ptr<MethodMeta> meta;
    std::unique_ptr<Method> method;
    std::vector<Given> given;
};

namespace {

/* Memory in pieces, freed at once. */
class Pieces final : public MemoryAllocator {
  public:
    Pieces() : MemoryAllocator(0, nullptr) {}
    void *allocate(size_t size, size_t alignment = kDefaultAlignment) override {
        if (!isPowerOf2(alignment) || size > SIZE_MAX - alignment) return nullptr;
        pieces.push_back(std::make_unique<uint8_t[]>(size + alignment));
        return alignPointer(pieces.back().get(), alignment);
    }
    void reset() override {
        pieces.clear();
    }

  private:
    std::vector<std::unique_ptr<uint8_t[]>> pieces;
};

template <typename T> Error take(Result<T> &&result, std::unique_ptr<T> &out) {
    if (result.ok()) out = std::make_unique<T>(std::move(*result));
    return result.ok() ? Error::Ok : result.error();
}

Error plan_memory(EtMethod &m) {
    for (size_t i = 0; i < m.meta->num_memory_planned_buffers(); i++) {
        Result<int64_t> size = m.meta->memory_planned_buffer_size(i);
        if (!size.ok()) return size.error();
        m.memory.emplace_back((size_t)*size);
    }
    for (auto &buffer : m.memory) m.spans.emplace_back(buffer.data(), buffer.size());
    m.planned = std::make_unique<HierarchicalAllocator>(
        Span<Span<uint8_t>>(m.spans.data(), m.spans.size()));
    m.allocator = std::make_unique<Pieces>();
    m.scratch = std::make_unique<Pieces>();
    m.manager =
        std::make_unique<MemoryManager>(m.allocator.get(), m.planned.get(), m.scratch.get());
    return Error::Ok;
}

/* Memory for a state that the program has none for; what it holds at first is data of its name. */
Error place_state(EtMethod &m, const TensorInfo &info) {
    Result<Tensor> tensor = m.method->get_attribute(info.name());
    if (!tensor.ok()) return tensor.error();
    m.states.emplace_back(info.nbytes());
    std::vector<uint8_t> &memory = m.states.back();
    Result<const NamedDataMap *> map = m.program->get_named_data_map();
    if (map.ok()) {
        Result<FreeableBuffer> data = (*map)->get_data(info.name());
        if (!data.ok()) return data.error();
        if (data->size() < memory.size()) return Error::InvalidProgram;
        if (!memory.empty()) memcpy(memory.data(), data->data(), memory.size());
        data->Free();
    }
    return internal::set_tensor_data(*tensor, memory.data(), memory.size());
}

Error place_states(EtMethod &m) {
    for (size_t i = 0; i < m.meta->num_attributes(); i++) {
        Result<TensorInfo> info = m.meta->attribute_tensor_meta(i);
        if (!info.ok()) return info.error();
        Error error = info->is_memory_planned() ? Error::Ok : place_state(m, *info);
        if (error != Error::Ok) return error;
    }
    return Error::Ok;
}

Error load(EtMethod &m, const char *path) {
    Error error = take(MmapDataLoader::from(path, MmapDataLoader::MlockConfig::NoMlock), m.loader);
    if (error != Error::Ok) return error;
    error =
        take(Program::load(m.loader.get(), Program::Verification::InternalConsistency), m.program);
    if (error != Error::Ok) return error;
    error = take(m.program->method_meta("forward"), m.meta);
    if (error != Error::Ok) return error;
    error = plan_memory(m);
    if (error != Error::Ok) return error;
    m.given.resize(m.meta->num_inputs());
    error = take(m.program->load_method("forward", m.manager.get()), m.method);
    return error == Error::Ok ? place_states(m) : error;
}

Error describe(const Result<Tag> &tag, const Result<TensorInfo> &info, EtTensor &out) {
    out = EtTensor{};
    out.dtype = -1;
    if (!tag.ok()) return tag.error();
    if (*tag != Tag::Tensor) return Error::Ok;
    if (!info.ok()) return info.error();
    if (info->sizes().size() > ET_MAX_RANK) return Error::NotSupported;
    out.bytes = info->nbytes();
    out.dtype = (int32_t)info->scalar_type();
    out.planned = info->is_memory_planned();
    out.rank = (uint32_t)info->sizes().size();
    for (uint32_t d = 0; d < out.rank; d++) out.sizes[d] = info->sizes()[d];
    return Error::Ok;
}

/* Inputs that are no tensors must have the values that the program has for them. */
Error set_constants(EtMethod &m) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored                                                                     \
    "-Wdeprecated-declarations" /* there is no other way to their values */
    for (size_t i = 0; i < m.given.size(); i++) {
        const EValue value = m.method->get_input(i);
        Error error = value.isTensor() ? Error::Ok : m.method->set_input(value, i);
        if (error != Error::Ok) return error;
    }
#pragma GCC diagnostic pop
    return Error::Ok;
}

Error set_input(EtMethod &m, uint32_t index, const EtTensor &tensor) {
    Given &given = m.given.at(index);
    if (tensor.rank > ET_MAX_RANK) return Error::InvalidArgument;
    int32_t stride = 1;
    for (uint32_t d = tensor.rank; d-- > 0;) {
        given.sizes[d] = tensor.sizes[d];
        given.order[d] = (uint8_t)d;
        given.strides[d] = stride;
        if (tensor.sizes[d] > 0) stride *= tensor.sizes[d];
    }
    given.tensor = std::make_unique<TensorImpl>((ScalarType)tensor.dtype, tensor.rank, given.sizes,
                                                tensor.data, given.order, given.strides);
    return m.method->set_input(EValue(Tensor(given.tensor.get())), index);
}

Error read_output(const EtMethod &m, uint32_t index, EtTensor &out) {
    const EValue &value = m.method->get_output(index);
    out = EtTensor{};
    out.dtype = -1;
    if (!value.isTensor()) return Error::Ok;
    const Tensor &tensor = value.toTensor();
    if (tensor.dim() > ET_MAX_RANK) return Error::NotSupported;
    for (ssize_t d = 0; d < tensor.dim(); d++) {
        if (tensor.dim_order()[d] != d) return Error::NotSupported;
        out.sizes[d] = tensor.size(d);
    }
    out.data = tensor.mutable_data_ptr();
    out.bytes = tensor.nbytes();
    out.dtype = (int32_t)tensor.scalar_type();
    out.rank = (uint32_t)tensor.dim();
    return Error::Ok;
}

} // namespace

/* ---- the functions ---- */

const char *ferry_et_version(void) {
    return FERRY_EXECUTORCH_VERSION;
}

const char *ferry_et_backends(void) {
    static std::string names;
    start_runtime();
    names.clear();
    for (size_t i = 0; i < get_num_registered_backends(); i++) {
        Result<const char *> name = get_backend_name(i);
        BackendInterface *backend = name.ok() ? get_backend_class(*name) : nullptr;
        if (!backend || !backend->is_available()) continue;
        names += names.empty() ? *name : std::string(", ") + *name;
    }
    return names.c_str();
}

const char *ferry_et_message(void) {
    return message;
}

int ferry_et_open(const char *path, uint32_t threads, EtMethod **method) {
    start_runtime();
    *method = nullptr;
    return guarded([&] {
        if (threads) {
            auto pool = executorch::extension::threadpool::get_threadpool();
            if (pool) pool->_unsafe_reset_threadpool(threads);
        }
        auto made = std::make_unique<EtMethod>();
        Error error = load(*made, path);
        if (error == Error::Ok) *method = made.release();
        return error;
    });
}

void ferry_et_close(EtMethod *method) {
    delete method;
}

uint32_t ferry_et_input_count(const EtMethod *method) {
    return (uint32_t)method->meta->num_inputs();
}

uint32_t ferry_et_output_count(const EtMethod *method) {
    return (uint32_t)method->meta->num_outputs();
}

int ferry_et_describe_input(const EtMethod *method, uint32_t index, EtTensor *tensor) {
    return guarded([&] {
        const MethodMeta &meta = *method->meta;
        return describe(meta.input_tag(index), meta.input_tensor_meta(index), *tensor);
    });
}

int ferry_et_describe_output(const EtMethod *method, uint32_t index, EtTensor *tensor) {
    return guarded([&] {
        const MethodMeta &meta = *method->meta;
        return describe(meta.output_tag(index), meta.output_tensor_meta(index), *tensor);
    });
}

int ferry_et_set_input(EtMethod *method, uint32_t index, const EtTensor *tensor) {
    return guarded([&] { return set_input(*method, index, *tensor); });
}

int ferry_et_bind_output(EtMethod *method, uint32_t index, void *data, uint64_t bytes) {
    return guarded([&] { return method->method->set_output_data_ptr(data, bytes, index); });
}

int ferry_et_run(EtMethod *method) {
    return guarded([&] {
        Error error = set_constants(*method);
        if (error == Error::Ok) error = method->method->execute();
        method->scratch->reset();
        return error;
    });
}

int ferry_et_output(const EtMethod *method, uint32_t index, EtTensor *tensor) {
    return guarded([&] { return read_output(*method, index, *tensor); });
}
