package server_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/server"
)

// All parts of a request that wait for the database share one time limit. If the first part uses it up, nothing is left
// for the others.
func TestPartsOfARequestHaveOneTimeTogether(t *testing.T) {
	t.Parallel()
	s := server.Server{RequestTimeout: time.Millisecond}
	c := echo.New().NewContext(httptest.NewRequestWithContext(t.Context(), "POST", "/", nil), httptest.NewRecorder())
	first, cancel := s.Bounded(c)
	<-first.Done()
	cancel()
	second, cancel := s.Bounded(c)
	defer cancel()
	if second.Err() == nil {
		t.Error("the second part has time left")
	}
}
