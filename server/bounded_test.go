package server_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/server"
)

// The parts of a request that wait for the database have one time together: where the first has taken it, none is left.
func TestPartsOfARequestHaveOneTimeTogether(t *testing.T) {
	t.Parallel()
	s := server.Server{RequestTimeout: time.Millisecond}
	c := echo.New().NewContext(httptest.NewRequestWithContext(t.Context(), "POST", "/", nil), httptest.NewRecorder())
	first, end := s.Bounded(c)
	<-first.Done()
	end()
	second, end := s.Bounded(c)
	defer end()
	if second.Err() == nil {
		t.Error("the second part has time left")
	}
}
