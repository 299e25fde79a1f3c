/* A FileSystem for RocksDB that schedules reads, writes and deletes with forebay: see README.md. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <sstream>

#include <rocksdb/file_system.h>
#include <rocksdb/utilities/object_registry.h>
#include <rocksdb/version.h>

#include "forebay.hpp"

namespace {

using namespace rocksdb;

void say(const std::string &text) { std::fprintf(stderr, "forebay-rocksdb: %s\n", text.c_str()); }

enum ClassId { READS, LOG, FLUSHES, STALLED, COMPACTION, DELETES, CLASSES };
constexpr std::array<const char *, CLASSES> class_names{"reads", "log", "flushes", "stalled", "compaction", "deletes"};

enum class Kind { Table, Log, Manifest, Other };
const char *name_of(Kind kind) {
    constexpr const char *names[] = {"table", "log", "manifest", "other"};
    return names[static_cast<int>(kind)];
}

Kind kind_of(const std::string &path) {
    const std::string name = path.substr(path.rfind('/') + 1);
    auto ends = [&](const char *with) {
        const size_t len = std::strlen(with);
        return name.size() > len && name.compare(name.size() - len, len, with) == 0;
    };
    auto begins = [&](const char *with) { return name.rfind(with, 0) == 0; };
    if (ends(".sst") || ends(".blob") || ends(".ldb"))
        return Kind::Table;
    if (ends(".log"))
        return Kind::Log;
    if (begins("MANIFEST-") || begins("OPTIONS-") || name == "CURRENT" || name == "IDENTITY" || ends(".dbtmp"))
        return Kind::Manifest;
    return Kind::Other;
}

/* Whether the calling thread is one of RocksDB's for compactions. */
bool is_compaction_thread() {
    char name[16] = "";
    pthread_getname_np(pthread_self(), name, sizeof name);
    return std::strncmp(name, "rocksdb:low", 11) == 0 || std::strncmp(name, "rocksdb:bot", 11) == 0;
}

/* A priority of RocksDB and what it stands for in a table. */
struct Tagged {
    const char *tag;
    ClassId id;
};
Tagged tagged(Env::IOPriority priority, ClassId untagged) {
    switch (priority) {
    case Env::IO_LOW:
        return {"low", COMPACTION};
    case Env::IO_MID:
        return {"mid", COMPACTION};
    case Env::IO_HIGH:
        return {"high", FLUSHES};
    case Env::IO_USER:
        /* what background work becomes while it keeps writers waiting */
        return is_compaction_thread() ? Tagged{"user, compaction thread", STALLED} : Tagged{"user", untagged};
    default:
        return {"-", untagged};
    }
}

struct Settings {
    bool strict = false, unlimited = false, paced_deletes = true, inherit = false;
    std::string report;
    std::array<uint32_t, CLASSES> shares{1000, 400, 200, 300, 100, 50};

    /* Reads FOREBAY_ROCKSDB, "key=value key=value". Returns an error message, or an empty string. */
    std::string read() {
        const char *given = std::getenv("FOREBAY_ROCKSDB");
        std::istringstream words(given == nullptr ? "" : given);
        std::string wrong;
        for (std::string word; words >> word;) {
            const size_t at = word.find('=');
            const std::string key = word.substr(0, at), value = at == word.npos ? "" : word.substr(at + 1);
            /* strict=1 may come after it */
            if (!set(key, value) && wrong.empty())
                wrong = "FOREBAY_ROCKSDB: " + word +
                       " is none of strict=, unlimited=, inherit=, paced-deletes= (0 or 1), report=FILE, or a class"
                       " (reads, log, flushes, stalled, compaction, deletes) and its shares (1 to 1000000)";
        }
        return wrong;
    }

private:
    bool set(const std::string &key, const std::string &value) {
        const std::map<std::string, bool *> flags{
            {"strict", &strict}, {"unlimited", &unlimited}, {"inherit", &inherit}, {"paced-deletes", &paced_deletes}};
        if (auto flag = flags.find(key); flag != flags.end()) {
            *flag->second = value == "1";
            return value == "0" || value == "1";
        }
        if (key == "report") {
            report = value;
            return !value.empty();
        }
        for (size_t id = 0; id < CLASSES; id++) {
            char *end = nullptr;
            const unsigned long number = std::strtoul(value.c_str(), &end, 10);
            if (key == class_names[id] && *end == '\0' && number >= 1 && number <= 1000000) {
                shares[id] = static_cast<uint32_t>(number);
                return true;
            }
        }
        return false;
    }
};

IOStatus failed(int number, const std::string &what, const std::string &path) {
    switch (number) {
    case ENOENT:
        return IOStatus::PathNotFound(path, what);
    case ENOSPC: {
        IOStatus status = IOStatus::NoSpace(path, what);
        status.SetRetryable(true);
        return status;
    }
    default:
        return IOStatus::IOError(path, what);
    }
}
IOStatus failed_call(const char *call, const std::string &path) {
    const int number = errno;
    return failed(number, std::string(call) + ": " + std::strerror(number), path);
}
IOStatus failed_forebay(const std::string &path) {
    return failed(forebay_last_errno(), forebay_last_error(nullptr), path);
}

/* The classes, and the counts of requests in each. It lives as long as any file. */
class Classes {
public:
    Classes(const std::string &properties, const Settings &settings) : report_(settings.report) {
        const uint32_t flags =
            (settings.strict ? FOREBAY_STRICT : 0u) | (settings.unlimited ? FOREBAY_UNLIMITED : 0u);
        scheduler_ = forebay::Scheduler::from_file(properties, flags);
        for (size_t id = 0; id < CLASSES; id++)
            classes_[id] = scheduler_.add_class(class_names[id], settings.shares[id]);
        if (settings.paced_deletes) {
            auto options = forebay::init<forebay_deleter_options>();
            options.flags = FOREBAY_DELETE_IN_PLACE;
            uint64_t made = 0;
            forebay::detail::check(forebay_deleter_new(classes_[DELETES].get(), &options, &made));
            deleter_.reset(made);
        }
    }
    ~Classes() {
        if (report_.empty())
            return;
        std::ostringstream text;
        for (const auto &[row, counts] : rows_)
            text << row << " | " << counts.first << " | " << counts.second << " |\n";
        if (FILE *file = std::fopen(report_.c_str(), "a")) {
            std::fputs(text.str().c_str(), file);
            std::fclose(file);
        } else {
            say(report_ + ": " + std::strerror(errno));
        }
    }

    forebay_class handle(ClassId id) const { return classes_[id].get(); }
    forebay_deleter deleter() const { return deleter_.get(); }

    /* The class of a request, which is counted. */
    ClassId place(const char *operation, Kind kind, Env::IOPriority priority, uint64_t bytes) {
        const bool reads = std::strcmp(operation, "read") == 0;
        const bool by_name = kind == Kind::Log || kind == Kind::Manifest;
        const Tagged placed = by_name ? Tagged{"any", LOG} : tagged(priority, reads ? READS : FLUSHES);
        count(operation, name_of(kind), placed.tag, class_names[placed.id], bytes);
        return placed.id;
    }
    void count(const char *operation, const char *kind, const char *tag, const char *in, uint64_t bytes) {
        if (report_.empty())
            return;
        const std::string row =
            std::string("| ") + operation + " | " + kind + " | " + tag + " | " + in;
        std::lock_guard<std::mutex> held(lock_);
        auto &counts = rows_[row];
        counts.first += 1;
        counts.second += bytes;
    }
    /* Counts unscheduled I/O, and prints a message for the first of each kind. */
    void unscheduled(const char *operation, const std::string &path) {
        count(operation, name_of(kind_of(path)), "any", "unscheduled", 0);
        std::lock_guard<std::mutex> held(lock_);
        if (unscheduled_[operation]++ == 0)
            say(std::string("unscheduled: ") + operation + " of " + path + "; further files are not reported");
    }

private:
    forebay::Scheduler scheduler_;
    std::array<forebay::Class, CLASSES> classes_;
    forebay::Handle deleter_;
    const std::string report_;
    std::mutex lock_;
    std::map<std::string, std::pair<uint64_t, uint64_t>> rows_;
    std::map<std::string, uint64_t> unscheduled_;
};

/* An open file, as its readers and writers share it. */
class File {
public:
    File(std::shared_ptr<Classes> classes, std::string path) : classes_(std::move(classes)), path_(std::move(path)) {}
    ~File() {
        if (fd_ >= 0)
            ::close(fd_);
    }
    IOStatus open(int flags, const FileOptions &options, bool direct) { return open(path_, flags, options, direct); }
    /* Where it is before it is renamed. */
    IOStatus open(const std::string &at, int flags, const FileOptions &options, bool direct) {
        direct_ = direct;
        const mode_t mode = 0644;
        flags |= (direct ? O_DIRECT : 0) | (options.set_fd_cloexec ? O_CLOEXEC : 0);
        do
            fd_ = ::open(at.c_str(), flags, mode);
        while (fd_ < 0 && errno == EINTR);
        return fd_ < 0 ? failed_call("open", at) : IOStatus::OK();
    }
    IOStatus read(uint64_t offset, size_t n, const IOOptions &options, Slice *result, char *scratch) const {
        const ClassId id = place("read", options.rate_limiter_priority, n);
        size_t done = 0;
        IOStatus status = direct_ ? transfer(id, FOREBAY_READ, offset, scratch, n, &done) : IOStatus::OK();
        /* an error of a later part gives a short read; the next read returns the error */
        for (size_t more = 1; !direct_ && more > 0 && done < n && status.ok(); done += more)
            if (forebay_read(classes_->handle(id), fd_, scratch + done, n - done, offset + done, &more) < 0) {
                more = 0;
                status = failed_forebay(path_);
            }
        *result = Slice(scratch, status.ok() ? done : 0);
        return status;
    }
    /* A direct request, in parts that each have a permit. A write that does not get as far as the next sector ends
     * without an error, with less in `done` than `n`. */
    IOStatus transfer(ClassId id, int op, uint64_t offset, char *data, size_t n, size_t *done) const {
        const size_t sector = 512;
        for (*done = 0; *done < n;) {
            const uint64_t at = offset + *done, left = n - *done;
            uint64_t permit = 0, part = 0;
            if (forebay_admit_part(classes_->handle(id), fd_, op, static_cast<int64_t>(at), left, FOREBAY_FOREVER,
                                   &permit, &part) < 0)
                return failed_forebay(path_);
            const size_t len = std::max<uint64_t>(part, std::min<uint64_t>(left, kDefaultPageSize));
            ssize_t moved = 0;
            do
                moved = op == FOREBAY_READ ? ::pread(fd_, data + *done, len, static_cast<off_t>(at))
                                           : ::pwrite(fd_, data + *done, len, static_cast<off_t>(at));
            while (moved < 0 && errno == EINTR);
            const int number = errno;
            forebay_complete(permit, moved);
            errno = number;
            if (moved < 0)
                return failed_call(op == FOREBAY_READ ? "pread" : "pwrite", path_);
            size_t whole = static_cast<size_t>(moved);
            const bool is_short = whole < len, has_page = whole >= kDefaultPageSize;
            /* a short read of less than a page, or that ends within a sector, is the end of the file */
            const bool is_end = op == FOREBAY_READ && is_short && (!has_page || whole % sector != 0);
            /* the rest begins at a page again, or at a sector where less than a page was written */
            if (is_short && !is_end)
                whole -= whole % (has_page ? kDefaultPageSize : sector);
            *done += whole;
            if (is_end || whole == 0)
                break;
        }
        return IOStatus::OK();
    }
    ClassId place(const char *operation, Env::IOPriority priority, uint64_t bytes) const {
        return classes_->place(operation, kind_of(path_), priority, bytes);
    }
    IOStatus drop_cached(size_t offset, size_t len) const {
        if (!direct_)
            ::posix_fadvise(fd_, static_cast<off_t>(offset), static_cast<off_t>(len), POSIX_FADV_DONTNEED);
        return IOStatus::OK();
    }

    const std::shared_ptr<Classes> classes_;
    const std::string path_;
    int fd_ = -1;
    bool direct_ = false;
};

class Sequential : public FSSequentialFile {
public:
    Sequential(std::shared_ptr<Classes> classes, const std::string &path) : file_(std::move(classes), path) {}
    IOStatus Read(size_t n, const IOOptions &options, Slice *result, char *scratch, IODebugContext *) override {
        IOStatus status = file_.read(at_, n, options, result, scratch);
        at_ += result->size();
        return status;
    }
    IOStatus PositionedRead(uint64_t offset, size_t n, const IOOptions &options, Slice *result, char *scratch,
                            IODebugContext *) override {
        return file_.read(offset, n, options, result, scratch);
    }
    IOStatus Skip(uint64_t n) override {
        at_ += n;
        return IOStatus::OK();
    }
    bool use_direct_io() const override { return file_.direct_; }
    IOStatus InvalidateCache(size_t offset, size_t len) override { return file_.drop_cached(offset, len); }

    File file_;

private:
    uint64_t at_ = 0;
};

/* Its MultiRead and ReadAsync are RocksDB's defaults, which call Read. */
class RandomAccess : public FSRandomAccessFile {
public:
    RandomAccess(std::shared_ptr<Classes> classes, const std::string &path) : file_(std::move(classes), path) {}
    IOStatus Read(uint64_t offset, size_t n, const IOOptions &options, Slice *result, char *scratch,
                  IODebugContext *) const override {
        return file_.read(offset, n, options, result, scratch);
    }
    /* Read-ahead by the kernel would be unscheduled. RocksDB reads into a buffer of its own instead. */
    IOStatus Prefetch(uint64_t, size_t n, const IOOptions &, IODebugContext *) override {
        file_.classes_->count("prefetch", name_of(kind_of(file_.path_)), "any", "refused, becomes a read", n);
        return IOStatus::NotSupported("forebay: Prefetch; Read has a permit");
    }
    void Hint(AccessPattern pattern) override {
        const int advice = pattern == kNormal       ? POSIX_FADV_NORMAL
                           : pattern == kRandom     ? POSIX_FADV_RANDOM
                           : pattern == kSequential ? POSIX_FADV_SEQUENTIAL
                                                    : -1;
        if (advice >= 0 && !file_.direct_)
            ::posix_fadvise(file_.fd_, 0, 0, advice);
    }
    bool use_direct_io() const override { return file_.direct_; }
    IOStatus InvalidateCache(size_t offset, size_t len) override { return file_.drop_cached(offset, len); }

    File file_;
};

class Writable : public FSWritableFile {
public:
    Writable(std::shared_ptr<Classes> classes, const std::string &path, const FileOptions &options)
        : FSWritableFile(options), fallocates_(options.allow_fallocate), file_(std::move(classes), path) {}
    ~Writable() override { Close(IOOptions(), nullptr).PermitUncheckedError(); }

    IOStatus begin(bool at_end) {
        struct stat found {};
        if (at_end && ::fstat(file_.fd_, &found) != 0)
            return failed_call("fstat", file_.path_);
        size_ = at_end ? static_cast<uint64_t>(found.st_size) : 0;
        /* Made here, so that a thread that syncs a log does not wait for one that appends to it. */
        if (kind_of(file_.path_) != Kind::Log || file_.direct_)
            return IOStatus::OK();
        IOStatus status = make_writer(LOG, 2 * log_left);
        /* RocksDB deletes most logs that it does not sync before the kernel writes them. With
           wal_bytes_per_sync it requests earlier write-back. */
        if (status.ok() && forebay_writer_set_write_back_after(writer_.get(), log_left) < 0)
            return failed_forebay(file_.path_);
        return status;
    }
    using FSWritableFile::Append;
    IOStatus Append(const Slice &data, const IOOptions &options, IODebugContext *dbg) override {
        return PositionedAppend(data, size_, options, dbg);
    }
    IOStatus PositionedAppend(const Slice &data, uint64_t offset, const IOOptions &options, IODebugContext *) override {
        const Env::IOPriority of_request = options.rate_limiter_priority;
        const ClassId id =
            file_.place("write", of_request == Env::IO_TOTAL ? io_priority_ : of_request, data.size());
        if (file_.direct_) {
            size_t done = 0;
            /* pwrite does not change the data */
            char *bytes = const_cast<char *>(data.data());
            if (IOStatus status = file_.transfer(id, FOREBAY_WRITE, offset, bytes, data.size(), &done); !status.ok())
                return status;
            if (done < data.size())
                return IOStatus::IOError(file_.path_, "pwrite has written less than a sector");
        } else {
            if (IOStatus status = make_writer(id); !status.ok())
                return status;
            if (!data.empty() &&
                forebay_write(writer_.get(), data.data(), data.size(), static_cast<int64_t>(offset)) < 0)
                return failed_forebay(file_.path_);
        }
        size_ = offset + data.size();
        return IOStatus::OK();
    }
    IOStatus PositionedAppend(const Slice &data, uint64_t offset, const IOOptions &options,
                              const DataVerificationInfo &, IODebugContext *dbg) override {
        return PositionedAppend(data, offset, options, dbg);
    }
    IOStatus Truncate(uint64_t size, const IOOptions &, IODebugContext *) override {
        if (::ftruncate(file_.fd_, static_cast<off_t>(size)) != 0)
            return failed_call("ftruncate", file_.path_);
        size_ = size;
        return IOStatus::OK();
    }
    IOStatus Close(const IOOptions &, IODebugContext *) override {
        if (file_.fd_ < 0)
            return IOStatus::OK();
        /* starts write-back of its dirty bytes */
        writer_.reset();
        IOStatus status;
        size_t block = 0, allocated = 0;
        GetPreallocationStatus(&block, &allocated);
        if (allocated > 0 && ::ftruncate(file_.fd_, static_cast<off_t>(size_.load())) != 0)
            status = failed_call("ftruncate", file_.path_);
        if (::close(std::exchange(file_.fd_, -1)) != 0 && status.ok())
            status = failed_call("close", file_.path_);
        return status;
    }
    IOStatus Flush(const IOOptions &, IODebugContext *) override { return IOStatus::OK(); }
    IOStatus Sync(const IOOptions &options, IODebugContext *) override { return sync(options, 0); }
    IOStatus Fsync(const IOOptions &options, IODebugContext *) override { return sync(options, FOREBAY_SYNC_ALL); }
    IOStatus RangeSync(uint64_t, uint64_t, const IOOptions &, IODebugContext *) override {
        return writer_ && forebay_write_back(writer_.get()) < 0 ? failed_forebay(file_.path_) : IOStatus::OK();
    }
    IOStatus Allocate(uint64_t offset, uint64_t len, const IOOptions &, IODebugContext *) override {
        if (fallocates_ && ::fallocate(file_.fd_, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                                       static_cast<off_t>(len)) != 0 &&
            errno != EOPNOTSUPP)
            return failed_call("fallocate", file_.path_);
        return IOStatus::OK();
    }
    bool IsSyncThreadSafe() const override { return kind_of(file_.path_) == Kind::Log && !file_.direct_; }
    bool use_direct_io() const override { return file_.direct_; }
    uint64_t GetFileSize(const IOOptions &, IODebugContext *) override { return size_; }
    IOStatus InvalidateCache(size_t offset, size_t len) override { return file_.drop_cached(offset, len); }

private:
    /* The bytes of a log that stay in memory until it is synced. */
    static constexpr uint64_t log_left = 24 << 20;

    IOStatus make_writer(ClassId id, uint64_t dirty_max = 0) {
        if (writer_)
            return IOStatus::OK();
        uint64_t made = 0;
        if (forebay_writer_new(file_.classes_->handle(id), file_.fd_, dirty_max, &made) < 0)
            return failed_forebay(file_.path_);
        writer_.reset(made);
        return IOStatus::OK();
    }
    IOStatus sync(const IOOptions &options, uint32_t flags) {
        const Env::IOPriority of_request = options.rate_limiter_priority;
        const ClassId id = file_.place("sync", of_request == Env::IO_TOTAL ? io_priority_ : of_request, 0);
        const int code = writer_ ? forebay_writer_sync(writer_.get(), flags)
                                 : forebay_sync(file_.classes_->handle(id), file_.fd_, flags);
        return code < 0 ? failed_forebay(file_.path_) : IOStatus::OK();
    }

    const bool fallocates_;
    std::atomic<uint64_t> size_{0};

public:
    File file_;

private:
    /* declared after the file, whose descriptor it uses */
    forebay::Handle writer_;
};

class Directory : public FSDirectoryWrapper {
public:
    Directory(std::unique_ptr<FSDirectory> &&target, std::shared_ptr<Classes> classes, const std::string &path)
        : FSDirectoryWrapper(std::move(target)), file_(std::move(classes), path) {}
    IOStatus Fsync(const IOOptions &options, IODebugContext *dbg) override {
        return flushed([&] { return FSDirectoryWrapper::Fsync(options, dbg); });
    }
    IOStatus FsyncWithDirOptions(const IOOptions &options, IODebugContext *dbg, const DirFsyncOptions &how) override {
        return flushed([&] { return FSDirectoryWrapper::FsyncWithDirOptions(options, dbg, how); });
    }

    File file_;

private:
    template <class F>
    IOStatus flushed(F flush) {
        file_.classes_->count("sync", "directory", "any", class_names[LOG], 0);
        uint64_t permit = 0;
        if (forebay_admit_file(file_.classes_->handle(LOG), file_.fd_, FOREBAY_FLUSH, FOREBAY_OFFSET_UNKNOWN, 0,
                               FOREBAY_FOREVER, &permit) < 0)
            return failed_forebay(file_.path_);
        IOStatus status = flush();
        forebay_complete(permit, status.ok() ? 0 : -1);
        return status;
    }
};

class Scheduled : public FileSystemWrapper {
public:
    Scheduled(std::string uri, std::shared_ptr<Classes> classes)
        : FileSystemWrapper(FileSystem::Default()), uri_(std::move(uri)), classes_(std::move(classes)) {}
    const char *Name() const override { return "forebay"; }
    std::string GetId() const override { return uri_; }

    IOStatus NewSequentialFile(const std::string &path, const FileOptions &options,
                               std::unique_ptr<FSSequentialFile> *result, IODebugContext *) override {
        return opened(std::make_unique<Sequential>(classes_, path), options, result);
    }
    IOStatus NewRandomAccessFile(const std::string &path, const FileOptions &options,
                                 std::unique_ptr<FSRandomAccessFile> *result, IODebugContext *dbg) override {
        if (options.use_mmap_reads && !options.use_direct_reads) {
            classes_->unscheduled("mmap", path);
            return FileSystemWrapper::NewRandomAccessFile(path, options, result, dbg);
        }
        return opened(std::make_unique<RandomAccess>(classes_, path), options, result);
    }
    IOStatus NewWritableFile(const std::string &path, const FileOptions &options,
                             std::unique_ptr<FSWritableFile> *result, IODebugContext *) override {
        return writable(path, path, O_CREAT | O_TRUNC, options, result);
    }
    IOStatus ReopenWritableFile(const std::string &path, const FileOptions &options,
                                std::unique_ptr<FSWritableFile> *result, IODebugContext *) override {
        return writable(path, path, O_CREAT, options, result);
    }
    IOStatus ReuseWritableFile(const std::string &path, const std::string &old, const FileOptions &options,
                               std::unique_ptr<FSWritableFile> *result, IODebugContext *) override {
        return writable(path, old, 0, options, result);
    }
    IOStatus NewRandomRWFile(const std::string &path, const FileOptions &options,
                             std::unique_ptr<FSRandomRWFile> *result, IODebugContext *dbg) override {
        classes_->unscheduled("random writes", path);
        return FileSystemWrapper::NewRandomRWFile(path, options, result, dbg);
    }
    IOStatus NewMemoryMappedFileBuffer(const std::string &path,
                                       std::unique_ptr<MemoryMappedFileBuffer> *result) override {
        classes_->unscheduled("mmap", path);
        return FileSystemWrapper::NewMemoryMappedFileBuffer(path, result);
    }
    IOStatus NewDirectory(const std::string &path, const IOOptions &options, std::unique_ptr<FSDirectory> *result,
                          IODebugContext *dbg) override {
        std::unique_ptr<FSDirectory> made;
        if (IOStatus status = target()->NewDirectory(path, options, &made, dbg); !status.ok())
            return status;
        auto directory = std::make_unique<Directory>(std::move(made), classes_, path);
        IOStatus status = directory->file_.open(O_RDONLY | O_DIRECTORY, FileOptions(), false);
        if (status.ok())
            *result = std::move(directory);
        return status;
    }
    IOStatus DeleteFile(const std::string &path, const IOOptions &options, IODebugContext *dbg) override {
        struct stat found;
        const Kind kind = kind_of(path);
        if (kind != Kind::Table || classes_->deleter() == 0 || ::lstat(path.c_str(), &found) != 0) {
            classes_->count("delete", name_of(kind), "any", "not paced", 0);
            return FileSystemWrapper::DeleteFile(path, options, dbg);
        }
        classes_->count("delete", name_of(kind), "any", class_names[DELETES], static_cast<uint64_t>(found.st_size));
        uint64_t made = 0;
        if (forebay_delete(classes_->deleter(), path.data(), path.size(), &made) < 0)
            return failed_forebay(path);
        const forebay::Handle deletion(made);
        /* the name is removed then; the space is freed later */
        return forebay_deletion_wait_removed(deletion.get()) < 0 ? failed_forebay(path) : IOStatus::OK();
    }
    /* ReadAsync reads before it returns */
    IOStatus Poll(std::vector<void *> &, size_t) override { return IOStatus::OK(); }
    IOStatus AbortIO(std::vector<void *> &) override { return IOStatus::OK(); }

private:
    template <class F, class R>
    IOStatus opened(std::unique_ptr<F> made, const FileOptions &options, R *result) {
        IOStatus status = made->file_.open(O_RDONLY, options, options.use_direct_reads);
        if (status.ok())
            *result = std::move(made);
        return status;
    }
    /* mapped writes are buffered ones; what is neither cut nor renamed goes on at its end */
    IOStatus writable(const std::string &path, const std::string &old, int flags, const FileOptions &options,
                      std::unique_ptr<FSWritableFile> *result) {
        auto made = std::make_unique<Writable>(classes_, path, options);
        IOStatus status = made->file_.open(old, O_WRONLY | flags, options, options.use_direct_writes);
        if (status.ok() && old != path)
            status = RenameFile(old, path, options.io_options, nullptr);
        if (status.ok())
            status = made->begin(flags == O_CREAT);
        if (status.ok())
            *result = std::move(made);
        return status;
    }

    const std::string uri_;
    const std::shared_ptr<Classes> classes_;
};

/* The file system for when forebay cannot be used: the unscheduled one, or with strict=1 one that fails. */
class Instead : public FileSystemWrapper {
public:
    Instead(bool strict, const std::string &why)
        : FileSystemWrapper(FileSystem::Default()),
          status_(strict ? IOStatus::InvalidArgument("forebay", why) : IOStatus::OK()) {}
    const char *Name() const override { return "forebay-instead"; }
    IOStatus CreateDirIfMissing(const std::string &path, const IOOptions &options, IODebugContext *dbg) override {
        return status_.ok() ? FileSystemWrapper::CreateDirIfMissing(path, options, dbg) : status_;
    }
    IOStatus NewSequentialFile(const std::string &path, const FileOptions &options,
                               std::unique_ptr<FSSequentialFile> *result, IODebugContext *dbg) override {
        return status_.ok() ? FileSystemWrapper::NewSequentialFile(path, options, result, dbg) : status_;
    }
    IOStatus NewRandomAccessFile(const std::string &path, const FileOptions &options,
                                 std::unique_ptr<FSRandomAccessFile> *result, IODebugContext *dbg) override {
        return status_.ok() ? FileSystemWrapper::NewRandomAccessFile(path, options, result, dbg) : status_;
    }
    IOStatus NewWritableFile(const std::string &path, const FileOptions &options,
                             std::unique_ptr<FSWritableFile> *result, IODebugContext *dbg) override {
        return status_.ok() ? FileSystemWrapper::NewWritableFile(path, options, result, dbg) : status_;
    }

private:
    const IOStatus status_;
};

/* Root uses no file that other users can change. */
std::string refusal(const std::string &path) {
    struct stat found;
    if (::geteuid() != 0 || ::stat(path.c_str(), &found) != 0)
        return "";
    const bool is_others = found.st_uid != 0 || (found.st_mode & S_IWOTH) != 0 ||
                           (found.st_gid != 0 && (found.st_mode & S_IWGRP) != 0);
    return is_others ? path + ": not used by root, because others may write to it" : "";
}

void log_of_forebay(void *, int level, const char *text, size_t len) {
    if (level <= FOREBAY_LOG_WARN)
        say(std::string(text, len));
}

/* Databases of one process that name the same file share its disks. */
std::shared_ptr<Classes> classes_of(const std::string &path, const Settings &settings) {
    static std::mutex lock;
    static std::map<std::string, std::weak_ptr<Classes>> made;
    std::lock_guard<std::mutex> held(lock);
    auto classes = made[path].lock();
    if (classes == nullptr)
        made[path] = classes = std::make_shared<Classes>(path, settings);
    return classes;
}

FileSystem *make(const std::string &uri, std::unique_ptr<FileSystem> *guard) {
    Settings settings;
    std::string wrong = settings.read();
    const std::string path = uri.substr(std::strlen("forebay://"));
    if (wrong.empty())
        wrong = refusal(path);
    if (wrong.empty()) {
        try {
            forebay_set_log(log_of_forebay, nullptr);
            guard->reset(new Scheduled(uri, classes_of(path, settings)));
            return guard->get();
        } catch (const std::exception &error) {
            wrong = error.what();
        }
    }
    say(wrong + (settings.strict ? "; refused because of strict=1" : "; nothing is scheduled"));
    guard->reset(new Instead(settings.strict, wrong));
    return guard->get();
}

/* Removes this object from LD_PRELOAD, so that child processes do not load it. */
void keep_from_children() {
    Dl_info self;
    const char *preloaded = std::getenv("LD_PRELOAD");
    if (preloaded == nullptr || ::dladdr(reinterpret_cast<void *>(&keep_from_children), &self) == 0)
        return;
    std::string left, word;
    for (const char *at = preloaded;; at++) {
        if (*at != '\0' && *at != ':' && *at != ' ') {
            word += *at;
            continue;
        }
        const std::string name = "/" + std::string(self.dli_fname), end = "/" + word;
        const bool is_self = name.size() >= end.size() && name.compare(name.size() - end.size(), end.npos, end) == 0;
        if (!word.empty() && !is_self && word != self.dli_fname)
            left += (left.empty() ? "" : ":") + word;
        word.clear();
        if (*at == '\0')
            break;
    }
    if (left.empty())
        ::unsetenv("LD_PRELOAD");
    else
        ::setenv("LD_PRELOAD", left.c_str(), 1);
}

/* Does nothing in a program without RocksDB, whose symbols are weak here, and then 0. */
__attribute__((constructor)) void begin() {
    using Version = std::string (*)(bool);
    auto version = reinterpret_cast<Version>(::dlsym(RTLD_DEFAULT, "_ZN7rocksdb23GetRocksVersionAsStringB5cxx11Eb"));
    if (version == nullptr)
        return;
    Settings settings;
    settings.read();
    if (!settings.inherit)
        keep_from_children();
    const std::string made_for = std::to_string(ROCKSDB_MAJOR) + "." + std::to_string(ROCKSDB_MINOR);
    if (version(false) != made_for) {
        say("made for RocksDB " + made_for + ", but this program has " + version(true) + ": does nothing");
        return;
    }
    ObjectLibrary::Default()->AddFactory<FileSystem>(
        ObjectLibrary::PatternEntry("forebay", false).AddSeparator("://", false),
        [](const std::string &uri, std::unique_ptr<FileSystem> *guard, std::string *) { return make(uri, guard); });
}

}  // namespace
