package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// refuseEmpty returns an error if an argument is given but empty, as happens with an unset shell variable. If an empty
// optional argument counted as absent, the command could do more than intended: all files instead of one.
func refuseEmpty(text, argument string, optional bool) error {
	switch {
	case text != "":
		return nil
	case optional:
		return fmt.Errorf("the argument %s is empty: give it a value, or leave it out", argument)
	}
	return fmt.Errorf("the argument %s is empty: give it a value", argument)
}

// refuseContradiction returns an error for two flags if the command would ignore one of them. It ignores the
// environment, because settings there are for all commands.
func refuseContradiction(line *cobra.Command) error {
	if commandName(line) == "mcp" && line.Flags().Changed("home") && line.Flags().Changed("addr") {
		return errors.New("--home runs a server of its own, --addr names another one: give one of them")
	}
	return nil
}

// checkNameOrID returns an error if the name or the ID of a thing is empty. subject names the thing.
func checkNameOrID(text, subject string) error {
	if text == "" {
		return fmt.Errorf("it is empty: give the name or the ID of %s", subject)
	}
	return nil
}

// inputFile is a file that can be read until a context ends.
type inputFile struct {
	file    *os.File
	reader  io.Reader
	regular bool
}

// openFile opens a file to read. A directory is an error. When ctx ends, opening and reading end too, even for a pipe
// that nobody writes to.
func openFile(ctx context.Context, path string) (*inputFile, error) {
	type result struct {
		file *os.File
		err  error
	}
	opening := make(chan result, 1)
	go func() {
		file, err := os.Open(path) // #nosec G304 -- the user names it
		opening <- result{file, err}
	}()
	var got result
	select {
	case got = <-opening:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if got.err != nil {
		return nil, got.err
	}
	info, err := got.file.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a directory: name a file", path)
	}
	if err != nil {
		return nil, errors.Join(err, got.file.Close())
	}
	if info.Mode().IsRegular() {
		return &inputFile{got.file, untilEnd{ctx, got.file}, true}, nil
	}
	return &inputFile{got.file, interruptible{ctx, got.file}, false}, nil
}

// Read implements io.Reader.
func (f *inputFile) Read(p []byte) (int, error) { return f.reader.Read(p) }

// Seek implements io.Seeker.
func (f *inputFile) Seek(offset int64, whence int) (int64, error) { return f.file.Seek(offset, whence) }

// Close implements io.Closer.
func (f *inputFile) Close() error { return f.file.Close() }

// readAll reads a file, or standard input if the path is a dash.
func readAll(ctx context.Context, s streams, path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(s.in)
	}
	file, err := openFile(ctx, path)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(file)
	return text, errors.Join(err, file.Close())
}
