package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// The roles of a private Postgres. The superuser owns everything; serving serves. Start creates only the superuser.
const (
	superuser = "loci"
	serving   = "loci_server"
)

// dataMajor returns the major version of Postgres that wrote the data, or 0 if there is no data yet.
func dataMajor(data string) (int, error) {
	text, err := os.ReadFile(filepath.Join(data, "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("look at %s: %w", data, err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("%s/PG_VERSION holds %q, not a version of Postgres: set LOCI_HOME to another directory",
			data, text)
	}
	return major, nil
}

// initialize creates the cluster unless it exists. It builds the cluster in another directory and renames that when
// complete, so that a crash leaves nothing that looks like a cluster.
func (h *home) initialize(ctx context.Context, bin Binaries) error {
	if err := h.removeUnfinished(); err != nil {
		return fmt.Errorf("remove an unfinished cluster: %w", err)
	}
	if major, err := dataMajor(h.data()); major != 0 || err != nil {
		return err
	}
	if entries, err := os.ReadDir(h.data()); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s holds files, but no cluster of Postgres: move them away, or set LOCI_HOME to another directory",
			h.data())
	}
	unfinished, err := os.MkdirTemp(h.dir, "initdb-*")
	if err != nil {
		return fmt.Errorf("make a cluster: %w", err)
	}
	if err := h.initdb(ctx, bin, unfinished); err != nil {
		return errors.Join(err, os.RemoveAll(unfinished))
	}
	if err := os.Rename(unfinished, h.data()); err != nil {
		return fmt.Errorf("move the new cluster into place: %w", err)
	}
	return syncDir(h.dir)
}

func (h *home) removeUnfinished() error {
	unfinished, err := filepath.Glob(filepath.Join(h.dir, "initdb-*"))
	for _, dir := range unfinished {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

// initdb creates a cluster in dir that uses UTF-8 and sorts by code point, whatever the environment says. A system
// without the locale C.UTF-8 gets C.
func (h *home) initdb(ctx context.Context, bin Binaries, dir string) error {
	if err := h.own(dir); err != nil {
		return fmt.Errorf("make a cluster: %w", err)
	}
	var out []byte
	var err error
	for _, locale := range []string{"C.UTF-8", "C"} {
		out, err = run(ctx, h.command(ctx, bin, "initdb", "--pgdata="+dir, "--username="+superuser, "--encoding=UTF8",
			"--locale="+locale, "--auth-local=trust", "--auth-host=reject", "--data-checksums"))
		if !bytes.Contains(out, []byte("invalid locale name")) {
			break
		}
	}
	if isFullDisk(string(out)) {
		return fmt.Errorf("make a cluster in %s: the disk is full: make room there, and try again", dir)
	}
	if err != nil {
		return fmt.Errorf("make a cluster with initdb as user %s: %w: %s", h.account.name, err, lastLine(out))
	}
	return nil
}

// command returns a command for a program of Postgres. It runs as the account, and without this process's environment.
func (h *home) command(ctx context.Context, bin Binaries, program string, args ...string) *exec.Cmd {
	// A server outlives the call that starts it; Stop ends it.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), filepath.Join(bin.Dir, program), args...)
	cmd.Dir = h.dir
	cmd.Env = []string{"PATH=" + bin.Dir + ":/usr/bin:/bin", "HOME=" + h.dir, "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = h.account.attributes()
	return cmd
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// lastLine returns the last line of a program's output that is not blank.
func lastLine(out []byte) string {
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	return string(bytes.TrimSpace(lines[len(lines)-1]))
}
