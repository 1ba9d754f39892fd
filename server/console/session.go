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

// The console's cookies. No script can read them, and pages of other sites cannot send them. They last until the
// browser is closed; the session also ends on the server.
const (
	sessionCookie = "loci_session" // the secret of the session
	formCookie    = "loci_form"    // the value that each form must repeat
)

// sessionPrefix is the prefix of the secrets of sessions.
const sessionPrefix = "loci-session_"

// formHeader and formField carry the value of the form cookie.
const (
	formHeader = "X-Loci-Form"
	formField  = "form"
)

// visit is a request for a page.
type visit struct {
	console *Console
	ctx     context.Context //nolint:containedctx // of the request; each card has its own
	w       http.ResponseWriter
	r       *http.Request
	key     string // the secret of the session or, while the person signs in, the key; empty without either
	form    string // the value of the form cookie
	caller  caller

	parts *multipart.Reader // parts of a form that sends files, after its first field; nil for other requests
}

// caller is the owner of a key, in the API's form.
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

// visited returns a handler for people who are signed in. Others are sent to sign in.
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

// Knows reports whether the sender of a request may see the pages.
func (c *Console) Knows(r *http.Request) bool {
	v := &visit{console: c, ctx: r.Context(), r: r, key: sessionOf(r)}
	return v.get("/v1/caller", &v.caller) == nil
}

// sessionOf returns the session's secret from a browser's cookie; empty without one.
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

// isTLS reports whether the browser reached the server, or the proxy before it, over https.
func (v *visit) isTLS() bool {
	return v.r.TLS != nil || strings.EqualFold(v.r.Header.Get("X-Forwarded-Proto"), "https")
}

// Origin is the address at which the browser reached the server, such as http://127.0.0.1:8283.
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

// checkForm returns an error for a change that was not sent by a page of this console: the browser says so, or the form
// cookie is not repeated.
func (v *visit) checkForm() error {
	if v.r.Method == http.MethodGet || v.r.Method == http.MethodHead {
		return nil
	}
	refused := &apiError{Status: http.StatusForbidden,
		Detail: "This form does not come from a page of this console, or it is too old. Open the page again."}
	if http.NewCrossOriginProtection().Check(v.r) != nil {
		return refused
	}
	sent := v.r.Header.Get(formHeader)
	switch {
	case sent != "":
	case strings.HasPrefix(v.r.Header.Get("Content-Type"), "multipart/"):
		sent = v.firstField()
	default:
		v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxForm)
		sent = v.r.PostFormValue(formField)
	}
	if subtle.ConstantTimeCompare([]byte(sent), []byte(v.form)) != 1 {
		return refused
	}
	return nil
}

// firstField returns the first field of a form that sends files: the form's value. The files come after it.
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

// maxField bounds the first field of a form that sends files, in bytes.
const maxField = 1024

// maxForm bounds the body of a form, in bytes: a block may have a million characters, and a form needs up to 9 bytes
// for each.
const maxForm = 16 << 20

// signInPage shows the form that asks for a key.
func (c *Console) signInPage(w http.ResponseWriter, r *http.Request) {
	c.visit(w, r).askForKey(http.StatusOK, "")
}

// signInView is the form that asks for a key.
type signInView struct {
	Refused string // why the last key was refused; empty at first
	Next    string // address of the page to open then
}

func (v *visit) askForKey(status int, refused string) {
	v.render(status, page{Title: "Sign in", Bare: true, Cards: []card{{Name: "sign-in", Width: "w12",
		Load: known(signInCard, signInView{refused, local(v.r.FormValue("next"))})}}})
}

// signIn starts a session for a key that the API knows, and stores the session's secret in a cookie.
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

// tryKey returns an error unless the API knows the key and the key may read. It starts a session, and replaces v.key by
// the session's secret.
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

// local returns an address of the console; it returns base for any other address. Browsers and proxies may resolve
// dots, double slashes and backslashes, even escaped ones, so addresses with any of these count as foreign.
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
