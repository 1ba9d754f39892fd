package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/loci-memory/loci/files/document"
	"github.com/loci-memory/loci/files/document/child"
	"github.com/loci-memory/loci/files/sandbox"
)

// readDocumentCmd reads one document, in a child process.
type readDocumentCmd struct {
	Request string `arg:""`
}

func (c readDocumentCmd) Run(context.Context, streams) error { return child.Main(c.Request) }

// childReader returns a reader of documents, which runs this program as child processes.
func childReader(d database, log *slog.Logger) (*child.Reader, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program, which reads documents in processes of its own: %w", err)
	}
	if lacks := sandbox.Unconfined(); lacks != "" {
		log.Warn("a hostile document or jq expression could " + lacks)
	}
	return &child.Reader{Command: []string{program, "read-document"}, Log: log,
		Document: document.Readers{CacheDir: d.cache()}}, nil
}

// cache returns the directory for compiled programs. Only the server may write there. It returns "", which means no
// cache, if the user has no cache directory. Other directories are unsafe, because child processes of earlier versions
// could write to them.
func (d database) cache() string {
	if home, err := d.home(); err == nil && (d.Home != "" || !d.external()) {
		return filepath.Join(home, "compiled")
	}
	if os.Geteuid() == 0 {
		return "/var/cache/loci-compiled"
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "loci", "compiled")
}
