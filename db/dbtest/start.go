package dbtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/modules/postgres"
	"github.com/testcontainers/testcontainers-go/wait"

	"github.com/loci-memory/loci/db/local"
)

// image is the one that the documentation recommends.
const image = "pgvector/pgvector:pg17"

// The variables by which the programs of one run of go test find the Postgres that Share started for them. They are
// read with syscall.Getenv, because go test caches no result of a program that reads a value of os.Getenv that differs
// in each run.
const (
	sharedURL  = "LOCI_TEST_SHARED_URL"
	sharedKind = "LOCI_TEST_SHARED_KIND"
)

// Shared is a Postgres for the tests of several programs.
type Shared struct{ server }

// Share finds a Postgres as tests do that have none. The caller ends it with Stop.
func Share() (Shared, error) {
	s, err := start()
	return Shared{s}, err
}

// Kind returns where the Postgres comes from, as a phrase.
func (s Shared) Kind() string { return s.kind }

// Environment returns the variables of programs whose tests use the Postgres.
func (s Shared) Environment() []string {
	return []string{sharedURL + "=" + s.url, sharedKind + "=" + s.kind}
}

// Stop ends the Postgres, if Share started it.
func (s Shared) Stop() error {
	if s.stop == nil {
		return nil
	}
	return s.stop()
}

// start finds a Postgres for the tests of this program: the one that LOCI_TEST_DATABASE_URL names; else the one that
// Share started; else a container, if a Docker engine answers and has or gets the image; else a private one from the
// machine's own binaries.
func start() (server, error) {
	if url := os.Getenv("LOCI_TEST_DATABASE_URL"); url != "" {
		return server{url: url, kind: "the Postgres of LOCI_TEST_DATABASE_URL"}, nil
	}
	if url, shared := syscall.Getenv(sharedURL); shared {
		kind, _ := syscall.Getenv(sharedKind)
		return server{url: url, kind: kind}, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var inContainer error
	if dockerAnswers(ctx) {
		var s server
		if s, inContainer = startContainer(ctx); inContainer == nil {
			return s, nil
		}
		fmt.Fprintln(os.Stderr, "dbtest: no container, so a private Postgres:", inContainer)
	}
	s, err := startLocal(ctx)
	if err != nil {
		return server{}, errors.Join(err, inContainer)
	}
	return s, nil
}

// maxConnections is enough for as many test programs as go test runs at the same time.
func maxConnections() string { return strconv.Itoa(300 * runtime.GOMAXPROCS(0)) }

// sharedBuffers is enough for small databases.
const sharedBuffers = "96MB"

// withoutReaper disables testcontainers' reaper: Main ends the container, and not every machine has the reaper's image.
const withoutReaper = "TESTCONTAINERS_RYUK_DISABLED"

func dockerAnswers(ctx context.Context) (answers bool) {
	defer func() {
		if recover() != nil { // testcontainers panics where it finds no way to an engine
			answers = false
		}
	}()
	if os.Getenv(withoutReaper) == "" {
		if err := os.Setenv(withoutReaper, "true"); err != nil {
			return false
		}
	}
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return false
	}
	defer provider.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return provider.Health(ctx) == nil
}

// settings returns the settings of a Postgres whose data nobody keeps.
func settings() map[string]string {
	return map[string]string{"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off",
		"wal_level": "minimal", "max_wal_senders": "0", "checkpoint_timeout": "1h", "max_connections": maxConnections(),
		"shared_buffers": sharedBuffers}
}

// arguments returns settings as arguments of Postgres.
func arguments(settings map[string]string) (args []string) {
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	return args
}

func startContainer(ctx context.Context) (server, error) {
	c, err := postgres.Run(ctx, image,
		postgres.WithDatabase("loci"), postgres.WithUsername("loci"), postgres.WithPassword("loci"),
		testcontainers.WithWaitStrategyAndDeadline(20*time.Second,
			wait.ForLog("database system is ready to accept connections").WithOccurrence(2), wait.ForListeningPort("5432/tcp")),
		testcontainers.WithTmpfs(map[string]string{"/var/lib/postgresql/data": "rw"}),
		testcontainers.WithCmd(append([]string{"postgres"}, arguments(settings())...)...))
	stop := func() error { return testcontainers.TerminateContainer(c) }
	if err != nil {
		return server{}, errors.Join(err, stop())
	}
	url, err := c.ConnectionString(ctx, "sslmode=disable")
	if err != nil {
		return server{}, errors.Join(err, stop())
	}
	return server{url: url, kind: "a container of " + image, stop: stop}, nil
}

// roomInMemory returns the file system in memory if it has room for the tests of all packages, else nothing. A copy of
// the template costs half as much there.
func roomInMemory() string {
	const folder, enough = "/dev/shm", 8 << 30
	var disk syscall.Statfs_t
	err := syscall.Statfs(folder, &disk)
	if err != nil || disk.Bavail*uint64(disk.Bsize) < enough { //nolint:gosec // a block has a size
		return ""
	}
	return folder
}

func startLocal(ctx context.Context) (server, error) {
	home, err := os.MkdirTemp(roomInMemory(), "loci-test-")
	if err != nil {
		return server{}, err
	}
	if err := os.Chmod(home, 0o711); err != nil { // as root, Postgres runs as another user
		return server{}, err
	}
	pg, err := local.Start(ctx, local.Options{Home: home, Bin: os.Getenv("LOCI_POSTGRES_BIN"),
		Settings: settings()})
	if err != nil {
		return server{}, errors.Join(err, os.RemoveAll(home))
	}
	return server{url: pg.URL(), kind: "a private Postgres", stop: func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		return errors.Join(pg.Stop(ctx), os.RemoveAll(home))
	}}, nil
}
