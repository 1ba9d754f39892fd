package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/backup"
)

// backupCmd writes a database to a file, whether a server runs on it or not.
type backupCmd struct {
	database
	File string `arg:"" help:"The file to write, which must not be there yet."`
	JSON bool   `name:"json" help:"Print what the file has as JSON."`
}

// Run gives the file its name only after everything is on disk.
func (c backupCmd) Run(ctx context.Context, s streams) error {
	if err := checkNew(c.File); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(c.File), filepath.Base(c.File)+".partial-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // on success, the file has another name by now
	defer file.Close()
	return c.withConn(ctx, s, c.runningOrOpen, func(conn *pgx.Conn, _ db.URLs) error {
		show, finish := bytesShown(s, "")
		m, err := backup.Write(ctx, conn, file, version(), show)
		finish()
		if err = cmp.Or(err, file.Sync(), file.Close()); err != nil {
			return err
		}
		if err := os.Link(file.Name(), c.File); err != nil { // unlike a rename, a link never replaces a file
			return err
		}
		return printManifest(s, "The backup has", m, c.JSON)
	})
}

// checkNew returns an error if a file to be written exists already.
func checkNew(name string) error {
	if _, err := os.Lstat(name); !errors.Is(err, os.ErrNotExist) {
		return cmp.Or(err, fmt.Errorf("the file %s is there already: name another one, or remove it", name))
	}
	return nil
}

// verifyCmd reads a backup to its end.
type verifyCmd struct {
	File string `arg:"" help:"A file that 'loci backup' wrote."`
	JSON bool   `name:"json" help:"Print what the file has as JSON."`
}

func (c verifyCmd) Run(ctx context.Context, s streams) error {
	file, err := openFile(ctx, c.File)
	if err != nil {
		return err
	}
	defer file.Close()
	show, finish := bytesShown(s, "")
	m, err := backup.Verify(file, show)
	finish()
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	return printManifest(s, "The file is whole. It has", m, c.JSON)
}

// restoreCmd loads a backup into an empty database.
type restoreCmd struct {
	database
	File string `arg:"" help:"A file that 'loci backup' wrote."`
	JSON bool   `name:"json" help:"Print what was restored as JSON."`
}

// Run reads the file to its end before it writes anything or creates a private Postgres. A database without a schema
// gets one.
func (c restoreCmd) Run(ctx context.Context, s streams) error {
	file, err := openFile(ctx, c.File)
	if err != nil {
		return err
	}
	defer file.Close()
	if !file.regular {
		return settingError{fmt.Errorf("%s is read twice, which only a regular file can be: name one", c.File)}
	}
	show, finish := bytesShown(s, "verify ")
	m, err := backup.Verify(file, show)
	finish()
	if err == nil {
		err = m.CheckProgram()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	if _, err := file.Seek(0, 0); err != nil {
		return err
	}
	return c.withConn(ctx, s, c.runningOrNew, func(conn *pgx.Conn, urls db.URLs) error {
		if _, err := db.Migrate(ctx, urls); err != nil {
			return err
		}
		show, finish := bytesShown(s, "restore ")
		m, err := backup.Restore(ctx, conn, file, show)
		finish()
		if err != nil {
			return err
		}
		if err := printManifest(s, "Restored, with the checksums of the file:", m, c.JSON); err != nil || c.JSON {
			return err
		}
		_, err = fmt.Fprintln(s.out, "A server builds the indexes of vectors in the background; 'loci migrate' builds them "+
			"now.")
		return err
	})
}

// bytesShown returns two functions: show displays the number of bytes done and the table, and end removes the display.
func bytesShown(s streams, what string) (show func(table string, bytes int64), end func()) {
	p := newProgressLine(s.err)
	return func(table string, bytes int64) {
		p.show(fmt.Sprintf("%s%s: %.1f MiB", what, table, float64(bytes)/(1<<20)))
	}, p.end
}

func printManifest(s streams, lead string, m backup.Manifest, asJSON bool) error {
	if asJSON {
		return printJSON(s, m)
	}
	rows, bytes := int64(0), int64(0)
	for _, t := range m.Tables {
		rows, bytes = rows+t.Rows, bytes+t.Bytes
	}
	_, err := fmt.Fprintf(s.out, "%s %d rows of %d tables, %.1f MiB, of the schema %d, made by Loci %s at %s.\n", lead,
		rows, len(m.Tables), float64(bytes)/(1<<20), m.Schema.Version, m.Loci, m.MadeAt.Format("2006-01-02 15:04:05 MST"))
	return err
}
