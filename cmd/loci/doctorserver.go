package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server"
)

// examinationTimeout bounds the examination that a running server makes of itself.
const examinationTimeout = 2 * doctorTimeout

// askServer asks the running server for its settings and for what it finds when it examines itself, and compares the
// settings with those that a server would have here. answered is false if it has not examined itself; then the findings
// say why.
func (c doctorCmd) askServer(ctx context.Context, own []server.Setting) (list []db.Finding, answered bool) {
	r := remote{Addr: cmp.Or(c.URL, c.Addr), APIKey: c.APIKey}
	var theirs []server.RunningSetting
	if err := limited(ctx, callTimeout, func(ctx context.Context) error {
		return r.get(ctx, "/v1/admin/settings", &theirs)
	}); err != nil {
		return c.unanswered(ctx, r, err)
	}
	var found []db.Finding
	if err := limited(ctx, examinationTimeout, func(ctx context.Context) error {
		return r.send(ctx, http.MethodPost, "/v1/admin/settings/check", nil, &found)
	}); errors.Is(err, errNotLoci) { // there is no such route
		list = append(list, db.MakeFinding("server", db.Advice, "the server at "+serverURL(r.Addr)+" says its settings, but "+
			"cannot examine itself; what follows is of the settings of this environment",
			"run the 'loci doctor' of its version"))
	} else if err != nil {
		list, answered = c.unanswered(ctx, r, err)
	} else {
		answered = true
		list = append(list, db.MakeFinding("server", db.Advice, "the server at "+serverURL(r.Addr)+
			" was asked: what follows is of its settings", ""))
	}
	list = append(list, compareSettings(own, theirs)...)
	return append(list, found...), answered
}

// unanswered says why the running server, if there is one, does not examine itself. told is true if that is for its
// database, of which it then says what it knows without a key: the settings of this environment are not in question.
func (c doctorCmd) unanswered(ctx context.Context, r remote, err error) (list []db.Finding, told bool) {
	refused, isRefused := errors.AsType[*refusedRequest](err)
	if isRefused && refused.status != http.StatusServiceUnavailable || errors.Is(err, errNotLoci) {
		return []db.Finding{c.unasked(r, err)}, false
	}
	unready := limited(ctx, callTimeout, func(ctx context.Context) error { return r.get(ctx, "/v1/ready", &struct{}{}) })
	why, isRefused := errors.AsType[*refusedRequest](unready)
	if !isRefused || why.status != http.StatusServiceUnavailable {
		return []db.Finding{c.unasked(r, err)}, false
	}
	at := serverURL(r.Addr)
	return []db.Finding{
		db.MakeFinding("server", db.Advice, "the server at "+at+" runs, and cannot examine itself, because its database "+
			"does not serve; nothing else is examined", ""),
		broken("database", errors.New("the server at "+at+" says of its database: "+why.detail), "mend its database first: "+
			"its log and that of the server say more; 'loci doctor --own-settings' examines what is set here"),
	}, true
}

// limited calls fn with a context that ends after d. The error says so if it has.
func limited(ctx context.Context, d time.Duration, fn func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, d, fmt.Errorf("it does not answer within %s", d))
	defer cancel()
	err := fn(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = context.Cause(ctx)
	}
	return err
}

// unasked says why the running server, if there is one, is not examined.
func (c doctorCmd) unasked(r remote, err error) db.Finding {
	const of, instead = "server", "; what follows is of the settings of this environment"
	at := serverURL(r.Addr)
	refused, isRefused := errors.AsType[*refusedRequest](err)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		remedy := ""
		if c.URL != "" {
			remedy = "start it, or correct LOCI_URL (--url)"
		}
		return db.MakeFinding(of, db.Advice, "none answers at "+at+instead, remedy)
	case isRefused && (refused.status == http.StatusUnauthorized || refused.status == http.StatusForbidden):
		return db.MakeFinding(of, db.Advice, fmt.Sprintf("the server at %s tells its settings to its operator alone%s", at,
			instead), "set LOCI_API_KEY (--api-key) to a key of the operator, which 'loci keys create --operator' makes, or be "+
			"sure that the settings here are the server's")
	case errors.Is(err, errNotLoci):
		return db.MakeFinding(of, db.Advice, fmt.Sprintf("what answers at %s is no Loci server that says its settings%s", at,
			instead), "name the server by LOCI_URL (--url)")
	}
	return broken(of, fmt.Errorf("the server at %s says nothing of itself: %w%s", at, err, instead),
		"see its log, and what is broken below")
}

// asksOnly are the settings that say here which server is asked and as whom, and not how a server runs.
var asksOnly = []string{"LOCI_ADDR", "LOCI_API_KEY"}

// compareSettings says where the settings of this environment are others than those of the running server. Secrets are
// not compared: neither side shows them.
func compareSettings(own []server.Setting, theirs []server.RunningSetting) (list []db.Finding) {
	const of, remedy = "settings", "correct the one that is wrong; 'loci doctor --own-settings' examines what is set here"
	running := map[string]server.Setting{}
	for _, one := range theirs {
		running[one.Variable] = one.Setting
	}
	var secrets, absent []string
	for _, here := range own {
		there, known := running[here.Variable]
		switch name := here.Variable; {
		case slices.Contains(asksOnly, name), sameValue(here.Value, there.Value) && !isSecret(here.Value):
		case here.Origin == server.OfDefault && known && there.Origin != server.OfDefault:
			absent = append(absent, name)
		case here.Origin == server.OfDefault:
		case !known:
			list = append(list, db.MakeFinding(of, db.Advice, name+" is set here, and the server has no such setting", remedy))
		case isSecret(here.Value) && isSecret(there.Value):
			secrets = append(secrets, name)
		default:
			list = append(list, db.MakeFinding(of, db.Advice, fmt.Sprintf("%s is %s here and %s at the server", name,
				shownValue(here), shownValue(there)), remedy))
		}
	}
	if len(list) == 0 {
		list = append(list, db.MakeFinding(of, db.Advice, "none that is set here is another at the server", ""))
	}
	if len(absent) > 0 {
		list = append(list, db.MakeFinding(of, db.Advice, "set at the server, and not here: "+strings.Join(absent, ", "), ""))
	}
	if len(secrets) > 0 {
		list = append(list, db.MakeFinding(of, db.Advice, "set at the server and here, secret, and so not compared: "+
			strings.Join(secrets, ", "), ""))
	}
	return list
}

// isSecret reports whether a value is shown as a secret.
func isSecret(value string) bool { return value == secret("").String() }

// shownValue shows the value of a setting.
func shownValue(s server.Setting) string {
	switch {
	case s.Value == "":
		return "not set"
	case isSecret(s.Value):
		return "set"
	}
	return "'" + printable(s.Value) + "'"
}

// sameValue reports whether two texts are the same value of a setting.
func sameValue(a, b string) bool {
	if a == b {
		return true
	}
	yes, err1 := strconv.ParseBool(a)
	too, err2 := strconv.ParseBool(b)
	if err1 == nil && err2 == nil {
		return yes == too
	}
	long, err1 := time.ParseDuration(a)
	wide, err2 := time.ParseDuration(b)
	return err1 == nil && err2 == nil && long == wide
}
