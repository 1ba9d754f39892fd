package main

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
	container "github.com/testcontainers/testcontainers-go/modules/postgres"
	"github.com/testcontainers/testcontainers-go/wait"

	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/local"
)

// image is the image that the documentation recommends.
const image = "pgvector/pgvector:pg17"

// postgres is a server that tests may fill.
type postgres struct {
	url  string
	kind string       // where it comes from, as a phrase
	stop func() error // nil if it ran before
}

// end stops the server if start started it.
func (p postgres) end() error {
	if p.stop == nil {
		return nil
	}
	return p.stop()
}

// start finds a Postgres: the one that the environment names; else a container, if a Docker engine answers and has or
// gets the image; else a private one from this machine's own binaries.
func start() (postgres, error) {
	if url, kind, given := dbtest.Given(); given {
		return postgres{url: url, kind: kind}, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var inContainer error
	if dockerAnswers(ctx) {
		var s postgres
		if s, inContainer = startContainer(ctx); inContainer == nil {
			return s, nil
		}
		fmt.Fprintln(os.Stderr, "shared: no container, so a private Postgres:", inContainer)
	}
	s, err := startLocal(ctx)
	if err != nil {
		return postgres{}, errors.Join(err, inContainer)
	}
	return s, nil
}

// maxConnections is enough for as many test programs as go test runs at once.
func maxConnections() string { return strconv.Itoa(300 * runtime.GOMAXPROCS(0)) }

// sharedBuffers is enough for small databases.
const sharedBuffers = "96MB"

// withoutReaper is the variable that disables testcontainers' reaper. run ends the container itself, and not every
// machine has the reaper's image.
const withoutReaper = "TESTCONTAINERS_RYUK_DISABLED"

func dockerAnswers(ctx context.Context) (answers bool) {
	defer func() {
		if recover() != nil { // testcontainers panics if it cannot reach an engine
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

// settings returns settings for a Postgres with data that nobody keeps.
func settings() map[string]string {
	return map[string]string{"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off",
		"wal_level": "minimal", "max_wal_senders": "0", "checkpoint_timeout": "1h", "max_connections": maxConnections(),
		"shared_buffers": sharedBuffers}
}

// arguments returns the settings as command-line arguments of Postgres.
func arguments(settings map[string]string) (args []string) {
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	return args
}

func startContainer(ctx context.Context) (postgres, error) {
	c, err := container.Run(ctx, image,
		container.WithDatabase("loci"), container.WithUsername("loci"), container.WithPassword("loci"),
		testcontainers.WithWaitStrategyAndDeadline(20*time.Second,
			wait.ForLog("database system is ready to accept connections").WithOccurrence(2), wait.ForListeningPort("5432/tcp")),
		testcontainers.WithTmpfs(map[string]string{"/var/lib/postgresql/data": "rw"}),
		testcontainers.WithCmd(append([]string{"postgres"}, arguments(settings())...)...))
	stop := func() error { return testcontainers.TerminateContainer(c) }
	if err != nil {
		return postgres{}, errors.Join(err, stop())
	}
	url, err := c.ConnectionString(ctx, "sslmode=disable")
	if err != nil {
		return postgres{}, errors.Join(err, stop())
	}
	return postgres{url: url, kind: "a container of " + image, stop: stop}, nil
}

// roomInMemory returns the directory of the file system in memory, if it has room for the tests of all packages, else
// "". Copying the template costs half as much there.
func roomInMemory() string {
	const folder, enough = "/dev/shm", 8 << 30
	var disk syscall.Statfs_t
	err := syscall.Statfs(folder, &disk)
	if err != nil || disk.Bavail*uint64(disk.Bsize) < enough { //nolint:gosec // a block has a size
		return ""
	}
	return folder
}

func startLocal(ctx context.Context) (postgres, error) {
	home, err := os.MkdirTemp(roomInMemory(), "loci-test-")
	if err != nil {
		return postgres{}, err
	}
	if err := os.Chmod(home, 0o711); err != nil { // if this is root, Postgres runs as another user
		return postgres{}, err
	}
	pg, err := local.Start(ctx, local.Options{Home: home, Bin: os.Getenv("LOCI_POSTGRES_BIN"),
		Settings: settings()})
	if err != nil {
		return postgres{}, errors.Join(err, os.RemoveAll(home))
	}
	return postgres{url: pg.URL(), kind: "a private Postgres", stop: func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		return errors.Join(pg.Stop(ctx), os.RemoveAll(home))
	}}, nil
}
