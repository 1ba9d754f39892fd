package console

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/a-h/templ"
)

//go:embed static
var staticFiles embed.FS

// static serves the stylesheet and the scripts.
func static() http.Handler {
	files := http.StripPrefix(base, http.FileServerFS(staticFiles))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/") {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Cache-Control", "no-cache")
		files.ServeHTTP(w, r)
	})
}

// page is a page to show.
type page struct {
	Title  string
	Sub    string
	Crumbs []link
	Tab    string          // the page's entry in the navigation
	Bare   bool            // without navigation
	Head   templ.Component // for the space right of the title; nil for none
	Cards  []card
}

type link struct{ Text, URL string }

// card is a part of a page that answers one question. It is loaded independently.
type card struct {
	Name  string // the card's id
	Title string // shown while the card waits, or if it fails
	Width string // a class of the stylesheet: w3 to w12
	Live  string // how often to reload, such as "10s"; empty for never
	Load  func(*visit) (show, error)
}

// cardView holds the data that the templates of all cards need.
type cardView struct {
	card
	Visit *visit
	URL   string // address for loading the card on its own
}

// show is a card's template with the card's data.
type show func(cardView) templ.Component

// loaded is the Load of a card with data that load reads.
func loaded[T any](
	template func(cardView, T) templ.Component, load func(*visit) (T, error),
) func(*visit) (show, error) {
	return func(v *visit) (show, error) {
		data, err := load(v)
		return func(c cardView) templ.Component { return template(c, data) }, err
	}
}

// known is the Load of a card with data that the page has.
func known[T any](template func(cardView, T) templ.Component, data T) func(*visit) (show, error) {
	return loaded(template, func(*visit) (T, error) { return data, nil })
}

// SignedIn reports whether the visit has a key.
func (v *visit) SignedIn() bool { return v.key != "" }

// MayWrite reports whether the person may change things.
func (v *visit) MayWrite() bool { return v.caller.May("write") }

// MayAdmin reports whether the person may manage keys.
func (v *visit) MayAdmin() bool { return v.caller.May("admin") }

// DefaultPageWait is how long a page waits for its cards.
const DefaultPageWait = time.Second

const cardWait = 25 * time.Second // for a card that is loaded on its own

// show answers with a page, or with one of its cards if the query asks for it.
func (v *visit) show(p page) error {
	if name := v.r.URL.Query().Get("card"); name != "" {
		for _, c := range p.Cards {
			if c.Name == name {
				return v.write(http.StatusOK, v.card(v.ctx, c, cardWait))
			}
		}
		return errNoPage
	}
	v.render(http.StatusOK, p)
	return nil
}

func (v *visit) render(status int, p page) {
	views := make([]templ.Component, len(p.Cards))
	var loading sync.WaitGroup
	for i, c := range p.Cards {
		loading.Go(func() { views[i] = v.card(v.ctx, c, v.console.pageWait) })
	}
	loading.Wait()
	if err := v.write(status, layout(p, v, views)); err != nil {
		http.Error(v.w, "The page cannot be shown: "+err.Error(), http.StatusInternalServerError)
	}
}

// write sends a page or a part of one.
func (v *visit) write(status int, part templ.Component) error {
	var out bytes.Buffer
	if err := part.Render(v.ctx, &out); err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.WriteHeader(status)
	_, _ = v.w.Write(out.Bytes()) //nolint:gosec // templ escaped it; after an error the client is gone
	return nil
}

// card loads a card. A card that is too slow shows that it waits, and is loaded again.
func (v *visit) card(ctx context.Context, c card, timeout time.Duration) templ.Component {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer time.AfterFunc(timeout, cancel).Stop() // the API sees a client that goes away, not a failure
	view := cardView{card: c, Visit: v, URL: v.cardURL(c.Name)}
	shown, err := c.Load(v.within(ctx))
	if e, ok := errors.AsType[*apiError](err); ok {
		return problemCard(view, e)
	}
	if ctx.Err() != nil && timeout != cardWait {
		return waitingCard(view)
	}
	if err != nil {
		return problemCard(view, &apiError{Status: http.StatusServiceUnavailable,
			Detail: "The server did not answer in time, or not in words that this page knows: " + err.Error()})
	}
	return shown(view)
}

// cardURL is the address for loading a single card of this page.
func (v *visit) cardURL(name string) string {
	query := v.r.URL.Query()
	query.Set("card", name)
	return v.r.URL.Path + "?" + query.Encode()
}

// fail answers a visit with an error. A person whom the API does not know is sent to sign in.
func (v *visit) fail(err error) {
	e, ok := errors.AsType[*apiError](err)
	if !ok {
		e = &apiError{Status: http.StatusInternalServerError, Detail: err.Error()}
	}
	if e.Status == http.StatusUnauthorized {
		target := base + "sign-in?next=" + url.QueryEscape(v.r.URL.RequestURI())
		if v.r.Header.Get("HX-Request") != "" {
			v.w.Header().Set("HX-Redirect", target)
			v.w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if v.r.Method == http.MethodGet || v.r.Method == http.MethodHead {
			http.Redirect(v.w, v.r, target, http.StatusSeeOther)
			return
		}
	}
	v.render(e.Status, page{Title: "This did not work", Bare: v.caller.OrgID == "", Cards: []card{{Name: "failure",
		Width: "w12", Load: known(failureCard, e)}}})
}

// done redirects the browser to a page after a change. note is a key of notes, for the page to show.
func (v *visit) done(path, note string) error {
	u, err := url.Parse(path)
	if err != nil {
		return err
	}
	query := u.Query()
	if note != "" {
		query.Set("done", note)
	}
	u.RawQuery = query.Encode()
	http.Redirect(v.w, v.r, u.String(), http.StatusSeeOther) //nolint:gosec // a path below base
	return nil
}

// notes are the messages about a change that was just made, by the word in the address.
var notes = map[string]string{
	"saved": "Saved.", "restored": "The earlier version is the current one again.", "closed": "The file is closed.",
	"opened": "The file is open.", "compacted": "The conversation was compacted.",
	"unchanged": "There was nothing to compact.",
	"reverted":  "The view from before the compaction is back.", "retried": "The file is being worked on again.",
	"deleted": "Deleted.", "ended": "Ended.", "created": "Created.", "cancelled": "Cancelled.",
	"renamed": "Renamed.", "pinned": "The file stays open until it is closed or unpinned.",
	"unpinned": "The file may be closed to make room for others again.",
	"uploaded": "The files are stored, and are being read.", "started": "Started.",
}

// Note is the message about the change that led to the page; empty without one.
func (v *visit) Note() string { return notes[v.r.URL.Query().Get("done")] }
