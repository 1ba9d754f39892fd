package server

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/rest"
	"github.com/loci-memory/loci/tenant/apikey"
)

func (s *Server) sessionRoutes(a *rest.API) {
	const path = "/v1/admin/sessions"
	admin := a.For(rest.Admin)
	a.For(rest.AnyKey).Hidden(http.MethodPost, "/v1/sessions", s.startSession, rest.Own)
	a.For(rest.AnyKey).Hidden(http.MethodDelete, "/v1/sessions", s.endOwnSession, rest.Own)
	rest.Get(admin, path, "list_sessions: List who is signed in to the console. With keys of the organization; for the "+
		"operator with those of all.", s.listSessions, rest.Own)
	rest.Delete(admin, path+"/{session_id}", "delete_session: End a session of the console.", s.endSessionOf, rest.Own)
}

// ConsoleSession is a session of the console, without its secret.
type ConsoleSession struct {
	ID        string    `json:"id"`
	KeyID     string    `json:"key_id" doc:"Of the key that signed in."`
	KeyName   string    `json:"key_name" doc:"The key's name."`
	OrgName   string    `json:"org_name" doc:"The name of the key's organization."`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at" doc:"When it ends by itself."`
}

// StartedSession is a new session of the console, with its secret.
type StartedSession struct {
	ConsoleSession
	Secret string `json:"secret" doc:"It is sent as a key is. It is not shown again."`
}

func sessionOf(s apikey.Session) ConsoleSession { return ConsoleSession(s) }

// startSession signs in to the console with the request's key.
func (s *Server) startSession(c echo.Context) error {
	ctx := c.Request().Context()
	key := rest.Caller(ctx)
	switch {
	case key.ID == "":
		return db.Conflict("the request has no API key, with which somebody could sign in")
	case key.SessionID != "":
		return rest.Forbidden("A session starts no other one, so that it has an end: sign in with the key")
	}
	secret, started, err := s.Keys.StartSession(ctx, key.ID)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, StartedSession{sessionOf(started), secret})
}

// endOwnSession signs out: it ends the session that the request belongs to.
func (s *Server) endOwnSession(c echo.Context) error {
	ctx := c.Request().Context()
	key := rest.Caller(ctx)
	if key.SessionID == "" {
		return db.NotFound("the request belongs to no session of the console")
	}
	ended, err := s.Keys.EndSession(ctx, 0, key.SessionID)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, sessionOf(ended))
}

func (s *Server) listSessions(ctx context.Context, input *struct{ rest.Paging }) ([]ConsoleSession, error) {
	list, err := s.Keys.Sessions(ctx, keysOf(ctx), input.Page(50, rest.OldestFirst))
	return rest.Each(list, sessionOf), err
}

func (s *Server) endSessionOf(ctx context.Context, input *struct {
	SessionID rest.SessionID `path:"session_id"`
}) (ConsoleSession, error) {
	ended, err := s.Keys.EndSession(ctx, keysOf(ctx), string(input.SessionID))
	return sessionOf(ended), err
}
