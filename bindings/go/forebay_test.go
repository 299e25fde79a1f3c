package forebay

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func is(t *testing.T, err, wanted error) {
	t.Helper()
	if !errors.Is(err, wanted) {
		t.Errorf("%v is not %v", err, wanted)
	}
}

func TestErrorsWrapCodes(t *testing.T) {
	_, err := FromFile("/no/such/file.yaml", 0)
	is(t, err, ErrConfig)
	var detail *Error
	if !errors.As(err, &detail) || !strings.Contains(err.Error(), "/no/such/file.yaml") {
		t.Errorf("%v", err)
	}
	scheduler := newTestScheduler(t, 1000, Strict)
	_, err = scheduler.Class("none")
	is(t, err, ErrNotFound)
	class := must(scheduler.AddClass("queries", 100))
	_, err = scheduler.AddClass("queries", 100)
	is(t, err, ErrExists)
	_, err = class.Admit(context.Background(), Op(9), 1)
	is(t, err, ErrInvalid)
	permit := must(class.Admit(context.Background(), Read, 4096))
	is(t, class.Remove(), nil)
	is(t, permit.Complete(0, io.EOF), nil)
	is(t, permit.Complete(0, nil), ErrHandle)
	_, err = class.Admit(context.Background(), Read, 1)
	is(t, err, ErrRemoved)
	if _, err = FromRates(nil, Flags(1<<20)); Code(-2) != ErrInvalid || ErrInvalid.Error() != "FOREBAY_E_INVALID" {
		t.Error(err)
	}
	is(t, err, ErrInvalid)
	other := must(scheduler.AddClass("others", 100))
	_, err = other.OnFile(must(os.Open("/")))
	is(t, err, ErrUnlisted)
	deletion := must(must(other.NewDeleter(DeleterOptions{})).Delete("/no/such/file"))
	_, err = deletion.Wait()
	is(t, err, fs.ErrNotExist)
}

func TestLongNamesAreWholeAndStayApart(t *testing.T) {
	scheduler := newTestScheduler(t, 1000, 0)
	names := []string{strings.Repeat("ä", 100) + "first", strings.Repeat("ä", 100) + "second"}
	for _, name := range names {
		must(scheduler.AddClass(name, 100))
	}
	snapshot := must(scheduler.Snapshot())
	for _, name := range names {
		if snapshot.Class(name) == nil {
			t.Error(name)
		}
	}
}

func TestSharesLimitsAndGroups(t *testing.T) {
	scheduler := newTestScheduler(t, 1000, 0)
	group := must(scheduler.AddGroup("tenant", 300))
	class := must(group.AddClass("queries", 100))
	is(t, group.Remove(), ErrBusy)
	is(t, class.SetShares(200), nil)
	is(t, class.SetLimits(Limits{BytesPerSecond: 1 << 20}), nil)
	found := must(must(scheduler.Class("queries")).On("disk"))
	if shares, limits := must(found.Shares()), must(found.Limits()); shares != 200 || limits != (Limits{1 << 20, 0}) {
		t.Error(shares, limits)
	}
	is(t, must(class.Admit(context.Background(), Write, 4096)).Complete(-1, io.ErrShortWrite), nil)
	if stats := must(scheduler.Snapshot()).Class("queries"); stats.Errors != 1 || stats.Shares != 200 {
		t.Errorf("%+v", stats)
	}
	if text := must(scheduler.OpenMetrics()); !strings.HasSuffix(text, "# EOF\n") || !strings.Contains(text, "queries") {
		t.Error(text)
	}
}

func TestFilesAreReadWrittenAndDeleted(t *testing.T) {
	dir := t.TempDir()
	disk := Disk{"disk", dir, 100_000, 100_000, 1 << 30, 1 << 30}
	scheduler := must(FromRates([]Disk{disk}, 0))
	class := must(must(scheduler.AddClass("files", 100)).OnFile(must(os.Open(dir))))
	path := filepath.Join(dir, "file")
	file := must(os.Create(path))
	writer := must(class.NewWriter(file, 0))
	// The bytes are a part of an object that has pointers.
	record := &struct {
		text [10]byte
		next *int
	}{[10]byte([]byte("0123456789")), new(int)}
	must(writer.Write(record.text[:]))
	must(writer.WriteAt([]byte("abc"), 2))
	_, err := writer.WriteAt([]byte("x"), -1)
	is(t, err, ErrInvalid)
	if dirty := must(writer.Dirty()); dirty == 0 {
		t.Error("nothing is dirty")
	}
	is(t, writer.WriteBack(), nil)
	is(t, writer.Sync(), nil)
	is(t, writer.Close(), nil)
	is(t, writer.Sync(), ErrHandle)
	is(t, class.Sync(file), nil)
	is(t, class.Prefetch(file, 0, 1<<40), nil)
	is(t, class.Prefetch(file, -1, 1), ErrInvalid)
	data := make([]byte, 16)
	n, err := class.ReadAt(file, data, 0)
	if is(t, err, io.EOF); string(data[:n]) != "01abc56789" {
		t.Errorf("%q", data[:n])
	}
	is(t, file.Close(), nil)
	deleter := must(class.NewDeleter(DeleterOptions{TrashIn: dir}))
	deletion := must(deleter.Delete(path))
	is(t, deletion.WaitRemoved(), nil)
	is(t, deletion.Cancel(), ErrBusy)
	if deleted := must(deletion.Wait()); deleted.Files != 1 {
		t.Errorf("%+v", deleted)
	}
	must(must(deleter.EmptyTrash(dir)).Wait())
	is(t, deleter.Close(), nil)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestAFileOfPropertiesAndTheLog(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "forebay.yaml")
	text := "disks:\n  - mountpoint: " + dir + "\n    read_iops: 1000\n    read_bandwidth: 100M\n" +
		"    write_iops: 1000\n    write_bandwidth: 100M\n"
	is(t, os.WriteFile(path, []byte(text), 0o600), nil)
	told := make(lines, 100)
	is(t, SetLog(slog.New(slog.NewTextHandler(told, nil))), nil)
	defer SetLog(nil)
	scheduler := must(FromFile(path, 0))
	is(t, scheduler.Reload(path), nil)
	is(t, scheduler.Reload("/no/such/file.yaml"), ErrConfig)
	class := must(scheduler.AddClass("queries", 100))
	must(class.OnFile(must(os.Open("/proc/self/status"))))
	for line := range told {
		if strings.Contains(line, "level=WARN") {
			return
		}
	}
}

type lines chan string

func (l lines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

func TestTheProgramOfTheReadmeRuns(t *testing.T) {
	readme := string(must(os.ReadFile("README.md")))
	if count := strings.Count(readme, "\n"); count > 80 {
		t.Errorf("the README has %d lines", count)
	}
	_, rest, _ := strings.Cut(readme, "```go\n")
	program, _, _ := strings.Cut(rest, "```")
	dir := t.TempDir()
	module := "module page\n\ngo 1.24\n\nrequire forebay v0.0.0\n\nreplace forebay => " + must(os.Getwd()) + "\n"
	is(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(module), 0o600), nil)
	is(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600), nil)
	command := exec.Command("go", "run", ".")
	command.Dir, command.Stderr = dir, os.Stderr
	if output := string(must(command.Output())); output != "16 bytes <nil>\n" {
		t.Error(output)
	}
}
