package console

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"
)

// The cookies of a browser, which no script reads and no other site's page sends. They last until the browser is
// closed; the session that the first one names ends on the server too.
const (
	sessionCookie = "loci_session" // the secret of the session of the person who is signed in
	formCookie    = "loci_form"    // what each form has to repeat
)

// sessionPrefix begins the secrets of sessions.
const sessionPrefix = "loci-session_"

// formHeader and formField carry the value of the form cookie.
const (
	formHeader = "X-Loci-Form"
	formField  = "form"
)

// visit is one request for a page.
type visit struct {
	console *Console
	ctx     context.Context //nolint:containedctx // of the request; each card has its own
	w       http.ResponseWriter
	r       *http.Request
	key     string // the secret of the session of who is signed in, and their key while they sign in; empty without
	form    string // the value of the form cookie
	caller  caller

	parts *multipart.Reader // of a form that sends files, after its first field; nil for any other
}

// caller is who a key belongs to, as the API says.
type caller struct {
	KeyID    string   `json:"key_id"`
	KeyName  string   `json:"key_name"`
	OrgID    string   `json:"org_id"`
	OrgName  string   `json:"org_name"`
	Scopes   []string `json:"scopes"`
	Operator bool     `json:"operator"`
	Version  string   `json:"version"`
}

// handler answers a visit.
type handler func(*visit) error

// visited makes a handler that answers who is signed in, and sends everyone else to sign in.
func (c *Console) visited(handle handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := c.visit(w, r)
		if err := v.checkForm(); err != nil {
			v.fail(err)
			return
		}
		err := v.get("/v1/caller", &v.caller)
		if err == nil {
			err = handle(v)
		}
		if err != nil {
			v.fail(err)
		}
	}
}

// Knows reports whether somebody sent a request who may see the pages.
func (c *Console) Knows(r *http.Request) bool {
	v := &visit{console: c, ctx: r.Context(), r: r, key: sessionOf(r)}
	return v.get("/v1/caller", &v.caller) == nil
}

// sessionOf returns the secret of the session of a browser; empty without one.
func sessionOf(r *http.Request) string {
	if cookie, err := r.Cookie(sessionCookie); err == nil && strings.HasPrefix(cookie.Value, sessionPrefix) {
		return cookie.Value
	}
	return ""
}

func (c *Console) visit(w http.ResponseWriter, r *http.Request) *visit {
	v := &visit{console: c, ctx: r.Context(), w: w, r: r, key: sessionOf(r)}
	if cookie, err := r.Cookie(formCookie); err == nil && len(cookie.Value) >= 26 {
		v.form = cookie.Value
	} else {
		v.form = rand.Text()
		v.setCookie(formCookie, v.form)
	}
	return v
}

// isTLS reports whether the browser reached the server, or the proxy before it, by https.
func (v *visit) isTLS() bool {
	return v.r.TLS != nil || strings.EqualFold(v.r.Header.Get("X-Forwarded-Proto"), "https")
}

// Origin is where the browser reached the server, such as http://127.0.0.1:8283.
func (v *visit) Origin() string {
	if v.isTLS() {
		return "https://" + v.r.Host
	}
	return "http://" + v.r.Host
}

func (v *visit) setCookie(name, value string) {
	age := 0
	if value == "" {
		age = -1
	}
	http.SetCookie(v.w, &http.Cookie{Name: name, Value: value, Path: base, MaxAge: age, //nolint:gosec // http on loopback
		HttpOnly: true, Secure: v.isTLS(), SameSite: http.SameSiteStrictMode})
}

// checkForm returns an error for a change that does not come from a page of this console: one that the browser says
// comes from elsewhere, or that does not repeat the form cookie.
func (v *visit) checkForm() error {
	if v.r.Method == http.MethodGet || v.r.Method == http.MethodHead {
		return nil
	}
	refused := &apiError{Status: http.StatusForbidden,
		Detail: "This form does not come from a page of this console, or it is too old. Open the page again."}
	if http.NewCrossOriginProtection().Check(v.r) != nil {
		return refused
	}
	given := v.r.Header.Get(formHeader)
	switch {
	case given != "":
	case strings.HasPrefix(v.r.Header.Get("Content-Type"), "multipart/"):
		given = v.firstField()
	default:
		v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxForm)
		given = v.r.PostFormValue(formField)
	}
	if subtle.ConstantTimeCompare([]byte(given), []byte(v.form)) != 1 {
		return refused
	}
	return nil
}

// firstField returns the form's value of a form that sends files, whose first field it is. The files follow.
func (v *visit) firstField() string {
	parts, err := v.r.MultipartReader()
	if err != nil {
		return ""
	}
	first, err := parts.NextPart()
	if err != nil || first.FormName() != formField {
		return ""
	}
	text, err := io.ReadAll(io.LimitReader(first, maxField))
	if err != nil {
		return ""
	}
	v.parts = parts
	return string(text)
}

// maxField limits the first field of a form that sends files.
const maxField = 1024

// maxForm limits the body of a form: a block may have a million characters, which a form writes in up to 9 bytes each.
const maxForm = 16 << 20

// signInPage asks for a key.
func (c *Console) signInPage(w http.ResponseWriter, r *http.Request) {
	c.visit(w, r).askForKey(http.StatusOK, "")
}

func (v *visit) askForKey(status int, refused string) {
	v.render(status, page{Title: "Sign in", Bare: true, Cards: []card{{Name: "sign-in", Width: "w12",
		Load: func(v *visit) (any, error) {
			return map[string]string{"Refused": refused, "Next": local(v.r.FormValue("next"))}, nil
		}}}})
}

// signIn starts a session for a key that the API knows, and keeps its secret in a cookie.
func (c *Console) signIn(w http.ResponseWriter, r *http.Request) {
	v := c.visit(w, r)
	if err := v.checkForm(); err != nil {
		v.askForKey(http.StatusForbidden, err.Error())
		return
	}
	v.key = strings.TrimSpace(r.PostFormValue("key"))
	switch err := v.tryKey(); {
	case statusOf(err) == http.StatusInternalServerError || err != nil && statusOf(err) == 0:
		v.fail(err)
	case err != nil:
		v.askForKey(statusOf(err), err.Error())
	default:
		v.setCookie(sessionCookie, v.key)
		http.Redirect(w, r, local(r.PostFormValue("next")), http.StatusSeeOther) //nolint:gosec // a path below base
	}
}

// tryKey returns an error unless the API knows the key, and the key may read. Then the session that it starts takes the
// place of the key.
func (v *visit) tryKey() error {
	for _, letter := range v.key {
		if letter <= ' ' || letter > '~' || strings.ContainsRune(`",;\`, letter) {
			return &apiError{Status: http.StatusUnauthorized, Detail: "A key has none of the characters that this one has."}
		}
	}
	if v.key == "" {
		return &apiError{Status: http.StatusUnauthorized, Detail: "Give a key."}
	}
	if err := v.get("/v1/caller", &v.caller); err != nil {
		return err
	}
	var started struct{ Secret string }
	err := v.send(http.MethodPost, "/v1/sessions", nil, &started)
	v.key = started.Secret
	return err
}

// signOut ends the session.
func (c *Console) signOut(w http.ResponseWriter, r *http.Request) {
	v := c.visit(w, r)
	if err := v.checkForm(); err != nil {
		v.fail(err)
		return
	}
	err := v.send(http.MethodDelete, "/v1/sessions", nil, nil)
	if err != nil && statusOf(err) != http.StatusUnauthorized && statusOf(err) != http.StatusNotFound {
		v.fail(err)
		return
	}
	v.setCookie(sessionCookie, "")
	v.setCookie(formCookie, "")
	http.Redirect(w, r, base+"sign-in", http.StatusSeeOther)
}

// local returns an address of the console, base in place of any other. Browsers and proxies may resolve dots, doubled
// slashes and backslashes, escaped ones too: an address with any of them is not of the console.
func local(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || !strings.HasPrefix(u.Path, base) ||
		strings.Contains(u.Path, `\`) || strings.ContainsFunc(address, unicode.IsControl) ||
		path.Clean(u.Path) != strings.TrimSuffix(u.Path, "/") {
		return base
	}
	return address
}

// scopes are the scopes of keys. Each includes those before it.
var scopes = []string{"read", "tools", "write", "admin"}

// May reports whether the key has a scope, or one that includes it.
func (c caller) May(scope string) bool {
	wanted := slices.Index(scopes, scope)
	return c.Operator || slices.ContainsFunc(c.Scopes, func(has string) bool {
		return slices.Index(scopes, has) >= wanted
	})
}
