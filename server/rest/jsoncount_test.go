package rest_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/server/rest"
	"github.com/loci-memory/loci/server/servertest"
)

// endless is a body with a text or number that does not end. It counts the bytes that were read.
type endless struct{ read int }

func (e *endless) Read(into []byte) (int, error) {
	e.read += len(into)
	copy(into, bytes.Repeat([]byte("1"), len(into)))
	return len(into), nil
}

// A text that exceeds the longest text that can be stored is refused while it arrives, before a decoder holds all of
// it.
func TestALongTextIsRefusedWhileItArrives(t *testing.T) {
	t.Parallel()
	const mostRead = 80 << 20
	a := rest.New(rest.Config{Title: "Toys", Log: slog.New(slog.DiscardHandler)})
	list := rest.NewListReader[struct{ Name string }](a, "toys")
	text := &endless{}
	a.For(rest.Public).Stream(huma.Operation{Method: "POST", Path: "/v1/items"}, func(echo.Context) error {
		for _, err := range list.Items(io.MultiReader(strings.NewReader(`{"toys":[{"Name":"`), text), new(rest.Warnings)) {
			if err != nil {
				return err
			}
		}
		return errors.New("the body ended")
	})
	a.For(rest.Public).Stream(huma.Operation{Method: "POST", Path: "/v1/spooled"}, func(c echo.Context) error {
		s, err := a.SpoolFrom(c, io.MultiReader(strings.NewReader(`{"toys":[`), io.LimitReader(text, mostRead)))
		if err != nil {
			return err
		}
		defer s.Close()
		_, _, err = s.Fields(rest.Lists{Names: []string{"toys"}, MaxItems: 9})
		return err
	})
	h := a.Handler()
	for _, path := range []string{"/v1/items", "/v1/spooled"} {
		text.read = 0
		got := servertest.Send(h, "POST", path, "")
		if got.Code != 422 || !strings.Contains(got.Text, "33554432 bytes") || text.read > mostRead+1<<20 {
			t.Errorf("%s: got %d %s after %d bytes", path, got.Code, got.Text, text.read)
		}
	}
}
