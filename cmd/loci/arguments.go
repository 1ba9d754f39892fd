package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"
)

// refuseEmpty returns an error if an argument is given but empty, as happens with an unset shell variable. If an empty
// optional argument counted as absent, the command could do more than intended: all files instead of one.
func refuseEmpty(command *kong.Context) error {
	for _, part := range command.Path {
		argument := part.Positional
		if argument == nil {
			continue
		}
		value := reflect.Indirect(argument.Target)
		empty := value.Kind() == reflect.String && value.Len() == 0
		if value.Kind() == reflect.Slice {
			for i := range value.Len() {
				empty = empty || value.Index(i).Kind() == reflect.String && value.Index(i).Len() == 0
			}
		}
		if empty && argument.Required {
			return fmt.Errorf("the argument <%s> is empty: give it a value", argument.Name)
		}
		if empty {
			return fmt.Errorf("the argument <%s> is empty: give it a value, or leave it out", argument.Name)
		}
	}
	return nil
}

// refuseContradiction returns an error for two flags if the command would ignore one of them. It ignores the
// environment, because settings there are for all commands.
func refuseContradiction(command *kong.Context) error {
	flags := map[string]bool{}
	for _, part := range command.Path {
		if part.Flag != nil {
			flags[part.Flag.Name] = true
		}
	}
	if commandName(command.Command()) == "mcp" && flags["home"] && flags["addr"] {
		return errors.New("--home runs a server of its own, --addr names another one: give one of them")
	}
	return nil
}

// nameOrID returns a decoder for a name or an ID. subject names the thing in errors. Arguments that name agents have
// the type "agent".
func nameOrID(subject string) kong.MapperFunc {
	return func(ctx *kong.DecodeContext, target reflect.Value) error {
		var text string
		if err := ctx.Scan.PopValueInto("name", &text); err != nil {
			return err
		}
		if text == "" {
			return fmt.Errorf("it is empty: give the name or the ID of %s", subject)
		}
		target.SetString(text)
		return nil
	}
}

// plainChoices removes the empty choice from the choices that an error of kong lists.
func plainChoices(err error) string {
	text := err.Error()
	if strings.Contains(text, "must be one of") {
		text = strings.NewReplacer(`"",`, "", `,""`, "").Replace(text)
	}
	return text
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
