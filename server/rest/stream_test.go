package rest_test

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/rest"
)

// A stream goes on while its key cannot be looked up because the database does not answer. If the key was revoked, the
// stream ends. The reason for the end is sent in any case.
func TestAStreamWhoseKeyCannotBeLookedUpGoesOn(t *testing.T) {
	t.Parallel()
	answer := httptest.NewRecorder()
	c := echo.New().NewContext(httptest.NewRequestWithContext(t.Context(), "POST", "/", nil), answer)
	err := db.Busy("away")
	rest.SetRecheck(c, func() error { return err })
	events := rest.NewEvents(c)
	if more, err := events.Send(rest.Event{Data: "first"}); !more || err != nil {
		t.Errorf("while the key cannot be looked up: got %v, %v", more, err)
	}
	err = rest.ErrUnauthorized
	if more, err := events.Send(rest.Event{Data: "second"}); more || !errors.Is(err, rest.ErrUnauthorized) {
		t.Errorf("after the key was revoked: got %v, %v", more, err)
	}
	if err := events.SendLast(rest.Event{Data: "last"}); err != nil {
		t.Error(err)
	}
	if got := answer.Body.String(); !strings.Contains(got, "first") || strings.Contains(got, "second") ||
		!strings.HasSuffix(got, "data: \"last\"\n\ndata: [DONE]\n\n") {
		t.Errorf("got %s", got)
	}
}
