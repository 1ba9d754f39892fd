package main

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/loci-memory/loci/files/document"
	"github.com/loci-memory/loci/files/document/child"
)

// documents says how documents are read.
type documents struct {
	PDFToText string `name:"pdftotext" env:"LOCI_PDFTOTEXT" help:"Program of poppler to read PDFs with instead of the built-in reader."`
}

// readDocumentCmd is the child that reads one document.
type readDocumentCmd struct {
	Request string `arg:""`
}

// Run implements the command.
func (c readDocumentCmd) Run() error { return child.Main(c.Request) }

// reader reads documents in children of this program.
func (c documents) reader(d database, log *slog.Logger) (*child.Reader, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program, which reads documents in processes of its own: %w", err)
	}
	r := &child.Reader{Command: []string{program, "read-document"}, Document: document.Readers{CacheDir: d.cache()}, Log: log}
	if c.PDFToText != "" {
		if r.Document.PDFToText, err = exec.LookPath(c.PDFToText); err != nil {
			return nil, settingError{fmt.Errorf("LOCI_PDFTOTEXT: %w", err)}
		}
		if r.Document.PDFToText, err = filepath.Abs(r.Document.PDFToText); err != nil {
			return nil, settingError{fmt.Errorf("LOCI_PDFTOTEXT: %w", err)}
		}
	}
	return r, nil
}

// cache is where compiled programs are kept; empty, which keeps none, where the user has no place for them.
func (d database) cache() string {
	if home, err := d.home(); err == nil && (d.Home != "" || d.DatabaseURL == "") {
		return filepath.Join(home, "cache")
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "loci")
}
