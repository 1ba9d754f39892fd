package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/tenant/apikey"
)

// keysCmd manages API keys.
type keysCmd struct {
	Create keysCreateCmd `cmd:"" help:"Create a key and print it. It is not shown again."`
	List   keysListCmd   `cmd:"" help:"List the keys."`
	Revoke keysRevokeCmd `cmd:"" help:"Revoke a key."`
}

type keysCreateCmd struct {
	admin
	asked
	Org      *string `aliases:"organization" help:"Organization of the key, created if new (default: default; --addr's)."`
	Name     string  `default:"key" help:"What the key is for."`
	Operator bool    `help:"Let the key create, rename and delete organizations over REST; its scope is admin."`

	Scope   words   `placeholder:"SCOPE,..." help:"What the key may do: read, tools, write or admin (default: write)."`
	Agent   words   `placeholder:"AGENT,..." help:"Names or IDs of agents for scope tools; in double quotes with a comma."`
	User    *string `placeholder:"USER" help:"Bind a key of scope tools to a user: an identity's id or identifier_key, made if new."` //nolint:lll // a tag is one line
	Expires *string `placeholder:"WHEN" help:"A time from now such as 12h, 90d or 2w, a date, or a time of RFC 3339."`

	RequestsPerMinute *int `placeholder:"N" help:"Requests a minute, in place of LOCI_KEY_REQUESTS_PER_MINUTE."`
	RequestsAtOnce    *int `placeholder:"N" help:"Requests under way at once, in place of LOCI_KEY_REQUESTS_AT_ONCE."`

	GatewayMode string `enum:",observe,remember,manage" default:"" placeholder:"MODE" help:"What the gateway does with the key's requests: observe, remember or manage (default: as the agent says)."` //nolint:lll // a tag is one line
}

// newKey returns the key to create.
func (c keysCreateCmd) newKey(today time.Time) (apikey.NewKey, error) {
	expires, err := expiry(c.Expires, today)
	key := apikey.NewKey{Name: c.Name, Operator: c.Operator, Scopes: c.Scope, AgentIDs: c.Agent,
		ExpiresAt: expires, RequestsPerMinute: c.RequestsPerMinute, RequestsAtOnce: c.RequestsAtOnce,
		GatewayMode: c.GatewayMode}
	if c.User != nil {
		if strings.TrimSpace(*c.User) == "" {
			return key, settingError{errors.New("--user is empty; give the id or the identifier_key of an identity")}
		}
		key.UserNamed = strings.TrimSpace(*c.User)
	}
	if c.Org != nil {
		key.Org = *c.Org
	} else if c.Addr == "" {
		key.Org = apikey.DefaultOrg
	}
	switch {
	case len(key.Scopes) > 0:
	case c.Operator:
		key.Scopes = []string{apikey.Admin}
	case len(c.Agent) > 0 || c.User != nil:
		key.Scopes = []string{apikey.Tools}
	default:
		key.Scopes = []string{apikey.Write}
	}
	if err == nil {
		err = key.Check()
	}
	if err == nil && c.Org != nil && (c.Addr == "" || !idPattern.MatchString(key.Org)) {
		err = apikey.CheckOrgName(key.Org)
	}
	if err != nil {
		return key, settingError{err}
	}
	return key, nil
}

// words are the values of a flag, separated by commas as in CSV: a value in double quotes may contain commas. The flag
// may be repeated.
type words []string

// Set adds the values of a text. An empty value is an error, because without it the key might be allowed more than
// intended.
func (w *words) Set(text string) error {
	line := csv.NewReader(strings.NewReader(text))
	line.LazyQuotes, line.TrimLeadingSpace = true, true
	values, err := line.Read()
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("'%s' is not a list of values between commas: %w", text, err)
	}
	for i := range values {
		values[i] = strings.TrimSpace(values[i])
	}
	if len(values) == 0 || slices.Contains(values, "") {
		return fmt.Errorf("'%s' has an empty value; leave the flag out, or give it values between commas", text)
	}
	*w = append(*w, values...)
	return nil
}

// expiry returns when a key expires; nil if no text is given.
func expiry(value *string, now time.Time) (*time.Time, error) {
	if value == nil {
		return nil, nil
	}
	text := *value
	if parts := fromNow.FindStringSubmatch(text); parts != nil && text != "" {
		weeks, err1 := strconv.Atoi(cmp.Or(parts[1], "0"))
		days, err2 := strconv.Atoi(cmp.Or(parts[2], "0"))
		hours, err3 := time.ParseDuration(cmp.Or(parts[3], "0s"))
		if errors.Join(err1, err2, err3) != nil || weeks > maxDays || days > maxDays ||
			float64(weeks*7+days)+hours.Hours()/24 > maxDays {
			return nil, fmt.Errorf("--expires is '%s', which is too far ahead; it may be %d days from now", text, maxDays)
		}
		if expires := now.AddDate(0, 0, weeks*7+days).Add(hours); expires.After(now) {
			return &expires, nil
		}
	}
	for _, form := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(form, text); err == nil {
			return &t, nil
		}
	}
	return nil, fmt.Errorf("--expires is '%s'; it must be a time from now such as 12h, 90d or 1d12h, a date such as "+
		"2027-01-31, or a time such as 2027-01-31T18:05:00Z; without the flag the key has no end", text)
}

// fromNow matches a time from now: weeks, days, and Go's hours, minutes and seconds.
var fromNow = regexp.MustCompile(`^(?:(\d+)w)?(?:(\d+)d)?((?:\d+(?:\.\d+)?[hms])*)$`)

// maxDays is the longest time from now, about a hundred years.
const maxDays = 36_500

func (c keysCreateCmd) Run(ctx context.Context, s streams) error {
	key, err := c.newKey(time.Now())
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGPIPE) // then writing to a closed pipe returns an error
	return c.with(ctx, s, true, func(a administration) error {
		created, err := a.CreateKey(ctx, key)
		if err != nil {
			return err
		}
		if c.JSON {
			err = printJSON(s, created)
		} else {
			_, err = fmt.Fprintln(s.out, created.Secret)
		}
		if err != nil {
			return c.takeBack(ctx, a, created, err)
		}
		return nil
	})
}

// takeBack revokes a key that could not be printed, and returns an error about both.
func (c keysCreateCmd) takeBack(ctx context.Context, a administration, created madeKey, unprinted error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	if _, err := a.Revoke(ctx, created.ID); err != nil {
		return fmt.Errorf("print the key: %w. Nobody has seen it; revoke it with 'loci keys revoke %s', which failed here: "+
			"%w", unprinted, created.ID, err)
	}
	return fmt.Errorf("print the key: %w. Nobody has seen it, and it is revoked", unprinted)
}

type keysListCmd struct {
	admin
	asked
}

func (c keysListCmd) Run(ctx context.Context, s streams) error {
	return c.with(ctx, s, false, func(a administration) error {
		list, err := a.Keys(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(s, list)
		}
		rows := make([][]string, len(list))
		for i, k := range list {
			rows[i] = []string{k.ID, k.Prefix, k.OrgName, k.Name, scopesOf(k), shownTime(&k.CreatedAt),
				shownTime(k.LastUsedAt), shownTime(k.ExpiresAt), limitsOf(k), strings.Join(k.AgentIDs, ",")}
		}
		return printTable(s, "ID | BEGINS WITH | ORGANIZATION | NAME | SCOPES | CREATED | LAST USED | EXPIRES | LIMITS | "+
			"AGENTS", rows)
	})
}

func scopesOf(k apikey.Key) string {
	if k.Operator {
		return "operator"
	}
	return strings.Join(k.Scopes, ",")
}

// limitsOf formats the key's own limits, and what the gateway does with its requests.
func limitsOf(k apikey.Key) string {
	var limits []string
	if k.RequestsPerMinute != nil {
		limits = append(limits, fmt.Sprintf("%d/minute", *k.RequestsPerMinute))
	}
	if k.RequestsAtOnce != nil {
		limits = append(limits, fmt.Sprintf("%d at once", *k.RequestsAtOnce))
	}
	if k.GatewayMode != "" {
		limits = append(limits, "gateway "+k.GatewayMode)
	}
	return dash(strings.Join(limits, ", "))
}

type keysRevokeCmd struct {
	admin
	asked
	Key string `arg:"" help:"The key, its ID, its name, or what it begins with as the list shows it."`
}

func (c keysRevokeCmd) Run(ctx context.Context, s streams) error {
	return c.with(ctx, s, false, func(a administration) error {
		id, err := revokeNamed(ctx, a, c.Key)
		if err != nil || !c.JSON {
			return err
		}
		return printJSON(s, map[string]string{"id": id})
	})
}

// revokeNamed revokes the key that a text identifies. It tries the text as a name last. A name could be a secret by
// mistake, so names are compared here and sent to neither the database nor a server.
func revokeNamed(ctx context.Context, a administration, text string) (string, error) {
	id, unknown := a.Revoke(ctx, text)
	if !errors.Is(unknown, db.ErrNotFound) {
		return id, unknown
	}
	keys, err := a.Keys(ctx)
	if err != nil {
		return "", err
	}
	var ids []string
	for _, k := range keys {
		if k.Name == text {
			ids = append(ids, k.ID)
		}
	}
	if len(ids) == 0 {
		return "", unknown
	}
	if id, err = onlyOne(kind{"API key", "API keys", "'loci keys list' shows them"}, text, ids); err != nil {
		return "", err
	}
	return a.Revoke(ctx, id)
}
