package document

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	pdfiumerrors "github.com/klippa-app/go-pdfium/errors"
)

// pdftotext reads a PDF with poppler's program pdftotext.
func (r Readers) pdftotext(ctx context.Context, in Input) (Text, error) {
	body, err := in.seekable()
	if err != nil {
		return Text{}, err
	}
	cmd := exec.CommandContext(ctx, r.PDFToText, "-enc", "UTF-8", "-eol", "unix", "-", "-")
	out, errs := &LimitedBuffer{LeftBytes: MaxTextBytes}, &LimitedBuffer{LeftBytes: 64 << 10}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = body, out, errs
	err = cmd.Run()
	_, exited := errors.AsType[*exec.ExitError](err)
	switch {
	case out.LeftBytes < 0:
		return Text{}, tooMuchText()
	case bytes.Contains(errs.Held.Bytes(), []byte("Incorrect password")):
		return Text{}, pdfRefusal(pdfiumerrors.ErrPassword)
	case exited:
		return Text{}, pdfRefusal(err)
	case err != nil:
		return Text{}, fmt.Errorf("run %s: %w", r.PDFToText, err)
	}
	return joinPages(strings.Split(strings.TrimSuffix(out.Held.String(), "\f"), "\f"))
}
