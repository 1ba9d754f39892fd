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

// examinationTimeout bounds the time in which a running server examines itself.
const examinationTimeout = 2 * doctorTimeout

// askServer asks the running server for its settings and its findings about itself. It compares these settings with
// ours, those that a server would have here. answered is false if the server did not examine itself; then the findings
// say why.
func (c doctorCmd) askServer(ctx context.Context, ours []server.Setting) (list []db.Finding, answered bool) {
	r := remote{Addr: cmp.Or(c.URL, c.Addr), APIKey: c.APIKey}
	var running []server.RunningSetting
	if err := limited(ctx, callTimeout, func(ctx context.Context) error {
		return r.get(ctx, "/v1/admin/settings", &running)
	}); err != nil {
		return c.unanswered(ctx, r, err)
	}
	var findings []db.Finding
	if err := limited(ctx, examinationTimeout, func(ctx context.Context) error {
		return r.send(ctx, http.MethodPost, "/v1/admin/settings/check", nil, &findings)
	}); errors.Is(err, errNotLoci) { // no such route
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
	list = append(list, compareSettings(ours, running)...)
	return append(list, findings...), answered
}

// unanswered says why the running server, if there is one, did not examine itself. explained is true if its database is
// the reason: the findings then contain what the server says without a key, and the settings of this environment do not
// matter.
func (c doctorCmd) unanswered(ctx context.Context, r remote, err error) (list []db.Finding, explained bool) {
	refused, isRefused := errors.AsType[*refusedRequest](err)
	if isRefused && refused.status != http.StatusServiceUnavailable || errors.Is(err, errNotLoci) {
		return []db.Finding{c.unasked(r, err)}, false
	}
	unready := limited(ctx, callTimeout, func(ctx context.Context) error { return r.get(ctx, "/v1/ready", &struct{}{}) })
	unavailable, isRefused := errors.AsType[*refusedRequest](unready)
	if !isRefused || unavailable.status != http.StatusServiceUnavailable {
		return []db.Finding{c.unasked(r, err)}, false
	}
	address := serverURL(r.Addr)
	return []db.Finding{
		db.MakeFinding("server", db.Advice, "the server at "+address+" runs, and cannot examine itself, because its "+
			"database does not serve; nothing else is examined", ""),
		broken("database", errors.New("the server at "+address+" says of its database: "+unavailable.detail),
			"mend its database first: its log and that of the server say more; 'loci doctor --own-settings' examines "+
				"what is set here"),
	}, true
}

// limited calls fn with a context that ends after d. If d has passed, the error says so.
func limited(ctx context.Context, d time.Duration, fn func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, d, fmt.Errorf("it does not answer within %s", d))
	defer cancel()
	err := fn(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = context.Cause(ctx)
	}
	return err
}

// unasked says why the running server, if there is one, was not examined.
func (c doctorCmd) unasked(r remote, err error) db.Finding {
	const of, instead = "server", "; what follows is of the settings of this environment"
	address := serverURL(r.Addr)
	refused, isRefused := errors.AsType[*refusedRequest](err)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		remedy := ""
		if c.URL != "" {
			remedy = "start it, or correct LOCI_URL (--url)"
		}
		return db.MakeFinding(of, db.Advice, "none answers at "+address+instead, remedy)
	case isRefused && (refused.status == http.StatusUnauthorized || refused.status == http.StatusForbidden):
		return db.MakeFinding(of, db.Advice, fmt.Sprintf("the server at %s tells its settings to its operator alone%s",
			address,
			instead), "set LOCI_API_KEY (--api-key) to a key of the operator, which 'loci keys create --operator' makes, or be "+
			"sure that the settings here are the server's")
	case errors.Is(err, errNotLoci):
		return db.MakeFinding(of, db.Advice, fmt.Sprintf("what answers at %s is no Loci server that says its settings%s",
			address,
			instead), "name the server by LOCI_URL (--url)")
	}
	return broken(of, fmt.Errorf("the server at %s says nothing of itself: %w%s", address, err, instead),
		"see its log, and what is broken below")
}

// asksOnly are settings that say which server to ask, and with which key. They do not affect how a server runs.
var asksOnly = []string{"LOCI_ADDR", "LOCI_API_KEY"}

// compareSettings says where the settings of this environment differ from those of the running server. It cannot
// compare secrets, because neither side shows them.
func compareSettings(ours []server.Setting, theirs []server.RunningSetting) (list []db.Finding) {
	const of, remedy = "settings", "correct the one that is wrong; 'loci doctor --own-settings' examines what is set here"
	running := map[string]server.Setting{}
	for _, setting := range theirs {
		running[setting.Variable] = setting.Setting
	}
	var secrets, absent []string
	for _, local := range ours {
		remote, known := running[local.Variable]
		switch name := local.Variable; {
		case slices.Contains(asksOnly, name), sameValue(local.Value, remote.Value) && !isSecret(local.Value):
		case local.Origin == server.OfDefault && known && remote.Origin != server.OfDefault:
			absent = append(absent, name)
		case local.Origin == server.OfDefault:
		case !known:
			list = append(list, db.MakeFinding(of, db.Advice, name+" is set here, and the server has no such setting", remedy))
		case isSecret(local.Value) && isSecret(remote.Value):
			secrets = append(secrets, name)
		default:
			list = append(list, db.MakeFinding(of, db.Advice, fmt.Sprintf("%s is %s here and %s at the server", name,
				shownValue(local), shownValue(remote)), remedy))
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

// isSecret reports whether a value is the placeholder of a secret.
func isSecret(value string) bool { return value == secret("").String() }

// shownValue describes the value of a setting.
func shownValue(s server.Setting) string {
	switch {
	case s.Value == "":
		return "not set"
	case isSecret(s.Value):
		return "set"
	}
	return "'" + printable(s.Value) + "'"
}

// sameValue reports whether two texts mean the same value of a setting.
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
