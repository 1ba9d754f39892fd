package apikey

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loci-memory/loci/db"
)

// The scopes of keys. Each scope includes those before it.
const (
	Read  = "read"  // read everything in the organization
	Tools = "tools" // work as one of the key's agents
	Write = "write" // read and change everything in the organization except its keys
	Admin = "admin" // manage the organization's keys, too
)

// Scopes lists all scopes, the weakest first.
var Scopes = []string{Read, Tools, Write, Admin}

// Limits of a key's fields.
const (
	maxAgents = 100
	maxLimit  = 1_000_000 // requests per minute, and requests at once
)

// May reports whether a key has the scope, or one that includes it. A key with the scope Tools has it for at least one
// agent.
func (k Key) May(scope string) bool {
	has := func(s string) bool { return slices.Contains(k.Scopes, s) }
	return k.Operator || has(Admin) || has(Write) && scope != Admin || has(scope)
}

// MayActAs reports whether a key may work as the agent.
func (k Key) MayActAs(agentID string) bool {
	return k.May(Write) || k.May(Tools) && slices.Contains(k.AgentIDs, agentID)
}

// Limits are limits on a key's requests to one server. 0 means no limit.
type Limits struct {
	PerMinute int // requests that may begin per minute; they refill evenly, and as many may begin at once
	AtOnce    int // requests in progress, including streams
}

// Check returns ErrInvalid if a limit is out of range. names are the names of PerMinute and AtOnce in the error.
func (l Limits) Check(names [2]string) error {
	for i, limit := range []int{l.PerMinute, l.AtOnce} {
		if limit < 0 || limit > maxLimit {
			return db.Invalid("%s is %d; it must be from 1 to %d, or 0 for no limit", names[i], limit, maxLimit)
		}
	}
	return nil
}

// Limits returns a key's limits, with the defaults where it has none.
func (k Key) Limits(defaults Limits) Limits {
	if k.RequestsPerMinute != nil {
		defaults.PerMinute = *k.RequestsPerMinute
	}
	if k.RequestsAtOnce != nil {
		defaults.AtOnce = *k.RequestsAtOnce
	}
	return defaults
}

// StrongerError says that a key may not create or revoke another one that could do more than itself.
type StrongerError struct{ text string }

func (e *StrongerError) Error() string { return e.text }

func stronger(format string, args ...any) error { return &StrongerError{fmt.Sprintf(format, args...)} }

// check returns ErrInvalid if the scopes, agents, rights or end of a new key break a rule.
func (n NewKey) check() error {
	for _, s := range n.Scopes {
		if !slices.Contains(Scopes, s) {
			return db.Invalid("there is no scope '%s'; the scopes are %s", s, strings.Join(Scopes, ", "))
		}
	}
	tools := slices.Contains(n.Scopes, Tools)
	switch {
	case len(n.Scopes) == 0:
		return db.Invalid("the key has no scope; the scopes are %s", strings.Join(Scopes, ", "))
	case n.Operator && !slices.Contains(n.Scopes, Admin):
		return db.Invalid("an operator's key has the scope %s", Admin)
	case tools && len(n.AgentIDs) == 0:
		return db.Invalid("a key with the scope %s names the agents that it works as, and this one names none", Tools)
	case !tools && len(n.AgentIDs) > 0:
		return db.Invalid("only a key with the scope %s names agents", Tools)
	case n.User != nil && !slices.Equal(n.Scopes, []string{Tools}):
		return db.Invalid("a key that is bound to a user has the scope %s alone", Tools)
	case len(n.AgentIDs) > maxAgents:
		return db.Invalid("the key names %d agents; it may name %d", len(n.AgentIDs), maxAgents)
	case n.ExpiresAt != nil && !n.ExpiresAt.After(time.Now()):
		return db.Invalid("the key would have expired at %s already", n.ExpiresAt.UTC().Format(time.RFC3339))
	}
	return nil
}

// limitNames are the names of RequestsPerMinute and RequestsAtOnce in JSON.
var limitNames = [2]string{"requests_per_minute", "requests_at_once"}

// checkLimits returns ErrInvalid if a limit of the new key is out of range.
func (n NewKey) checkLimits() error {
	for i, limit := range []*int{n.RequestsPerMinute, n.RequestsAtOnce} {
		if limit != nil && (*limit < 1 || *limit > maxLimit) {
			return db.Invalid("%s is %d; it must be from 1 to %d, or absent", limitNames[i], *limit, maxLimit)
		}
	}
	return nil
}

// checkNotStronger returns *StrongerError if the new key could do more, or works longer, than its maker.
func (n NewKey) checkNotStronger(maker Key) error {
	for _, s := range n.Scopes {
		if s == Tools && !maker.May(Write) || !maker.May(s) {
			return stronger("The API key cannot make one with the scope %s, which it lacks itself", s)
		}
	}
	most := maker.Limits(n.Defaults)
	switch {
	case n.Operator && !maker.Operator:
		return stronger("Only an operator's key makes another one")
	case maker.ExpiresAt != nil && (n.ExpiresAt == nil || n.ExpiresAt.After(*maker.ExpiresAt)):
		return stronger("The API key expires at %s and cannot make one that works longer: set expires_at",
			maker.ExpiresAt.UTC().Format(time.RFC3339))
	case maker.exceeded(n.RequestsPerMinute, maker.RequestsPerMinute, most.PerMinute):
		return stronger("The API key has at most %d requests_per_minute and cannot make one that has more", most.PerMinute)
	case maker.exceeded(n.RequestsAtOnce, maker.RequestsAtOnce, most.AtOnce):
		return stronger("The API key has at most %d requests_at_once and cannot make one that has more", most.AtOnce)
	}
	return nil
}

// exceeded reports whether limit, of a new key, is above its maker's. own is the maker's own limit. Without one, the
// server's limit most applies to every maker except operators.
func (k Key) exceeded(limit, own *int, most int) bool {
	if own == nil {
		return !k.Operator && most > 0 && limit != nil && *limit > most
	}
	return limit == nil || *limit > most
}

// checkFirst returns ErrInvalid if the new key is the first of the server, and could not manage keys. From then on the
// server refuses requests without a key, such as the one that creates it.
func (n NewKey) checkFirst(maker Key) error {
	if maker.ID == "" && (n.In != maker.Org || !slices.Contains(n.Scopes, Admin)) {
		return db.Invalid("the first key closes the server to requests without one, so it must have the scope %s, in the "+
			"organization %s", Admin, DefaultOrg)
	}
	return nil
}
