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

// Run implements the command. The file gets its name when all of it is on the disk.
func (c backupCmd) Run(ctx context.Context, s streams) error {
	if err := checkNew(c.File); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(c.File), filepath.Base(c.File)+".partial-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // it has another name if all went well
	defer file.Close()
	return c.withConn(ctx, s, c.runningOrOpen, func(conn *pgx.Conn, _ db.URLs) error {
		show, end := bytesShown(s, "")
		m, err := backup.Write(ctx, conn, file, version(), show)
		end()
		if err = cmp.Or(err, file.Sync(), file.Close()); err != nil {
			return err
		}
		if err := os.Link(file.Name(), c.File); err != nil { // unlike a rename, it replaces no file
			return err
		}
		return printManifest(s, "The backup has", m, c.JSON)
	})
}

// checkNew returns an error for the name of a file to write that is taken.
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

// Run implements the command.
func (c verifyCmd) Run(ctx context.Context, s streams) error {
	file, err := openFile(ctx, c.File)
	if err != nil {
		return err
	}
	defer file.Close()
	show, end := bytesShown(s, "")
	m, err := backup.Verify(file, show)
	end()
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

// Run implements the command. The file is read to its end before anything is written or a private Postgres is made, and
// a database without a schema gets it.
func (c restoreCmd) Run(ctx context.Context, s streams) error {
	file, err := openFile(ctx, c.File)
	if err != nil {
		return err
	}
	defer file.Close()
	if !file.regular {
		return settingError{fmt.Errorf("%s is read twice, which only a regular file can be: name one", c.File)}
	}
	show, end := bytesShown(s, "verify ")
	m, err := backup.Verify(file, show)
	end()
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
		show, end := bytesShown(s, "restore ")
		m, err := backup.Restore(ctx, conn, file, show)
		end()
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

// bytesShown returns functions that show how many bytes of which table a command is done with, and that end this.
func bytesShown(s streams, what string) (show func(table string, bytes int64), end func()) {
	p := newProgressLine(s.err)
	return func(table string, bytes int64) {
		p.show(fmt.Sprintf("%s%s: %.1f MiB", what, table, float64(bytes)/(1<<20)))
	}, p.end
}

func printManifest(s streams, what string, m backup.Manifest, asJSON bool) error {
	if asJSON {
		return printJSON(s, m)
	}
	rows, bytes := int64(0), int64(0)
	for _, t := range m.Tables {
		rows, bytes = rows+t.Rows, bytes+t.Bytes
	}
	_, err := fmt.Fprintf(s.out, "%s %d rows of %d tables, %.1f MiB, of the schema %d, made by Loci %s at %s.\n", what,
		rows, len(m.Tables), float64(bytes)/(1<<20), m.Schema.Version, m.Loci, m.MadeAt.Format("2006-01-02 15:04:05 MST"))
	return err
}
