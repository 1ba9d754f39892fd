package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Upstream is a provider of models, or a server that speaks as one does.
type Upstream struct {
	Name string `json:"name"`
	API  string `json:"api"` // FormatOpenAI or FormatAnthropic; empty means FormatOpenAI, or that of a provider's name
	URL  string `json:"url"` // without /chat/completions or /v1/messages; empty means the provider's own
	Key  string `json:"key"` // empty: the server has none

	KeyEnv string   `json:"key_env"` // the environment variable with the key, in place of Key
	Models []string `json:"models"`  // patterns with * of the models that are asked with Key; empty: all

}

// Upstreams are the upstreams of a server, by their rank.
type Upstreams []Upstream

// openAIURL is OpenAI's own endpoint.
const openAIURL = "https://api.openai.com/v1"

var upstreamName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)

// ParseUpstreams reads upstreams from a JSON list, or from the file that @ and its path name. getenv returns a variable
// of the environment. An error says what is wrong with which upstream.
func ParseUpstreams(text string, getenv func(string) string) (all Upstreams, err error) {
	raw := []byte(text)
	if file, isFile := strings.CutPrefix(text, "@"); isFile {
		if raw, err = os.ReadFile(file); err != nil {
			return nil, err
		}
	}
	if len(raw) == 0 {
		return nil, nil
	}
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&all); err != nil || decoder.More() {
		return nil, fmt.Errorf("expected a JSON list of upstreams, each with name, api, url, key or key_env, and models: %w",
			errors.Join(err, moreThanOne(err)))
	}
	for i := range all {
		u := &all[i]
		if slices.ContainsFunc(all[:i], func(other Upstream) bool { return other.Name == u.Name }) {
			return nil, fmt.Errorf("two upstreams have the name %q", u.Name)
		}
		if u.KeyEnv != "" {
			if u.Key != "" || getenv(u.KeyEnv) == "" {
				return nil, fmt.Errorf("upstream %q: key_env must name a variable that is set, and not stand beside key", u.Name)
			}
			u.Key = getenv(u.KeyEnv)
		}
		if u.API == "" {
			u.API = FormatOpenAI
			if u.Name == FormatAnthropic {
				u.API = FormatAnthropic
			}
		}
		if err := u.complete(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func moreThanOne(err error) error {
	if err == nil {
		return errors.New("more follows the list")
	}
	return nil
}

// complete checks the upstream, and fills in a provider's own URL.
func (u *Upstream) complete() error {
	if !upstreamName.MatchString(u.Name) {
		return fmt.Errorf("an upstream has the name %q; a name has 1 to 32 of a-z, 0-9, _ and -", u.Name)
	}
	own := map[string]string{FormatOpenAI: openAIURL, FormatAnthropic: anthropicURL}[u.API]
	if own == "" {
		return fmt.Errorf("upstream %q: api is %q; it must be %s or %s", u.Name, u.API, FormatOpenAI, FormatAnthropic)
	}
	if u.URL == "" {
		if u.Name != FormatOpenAI && u.Name != FormatAnthropic {
			return fmt.Errorf("upstream %q has no url", u.Name)
		}
		u.URL = own
	}
	at, err := url.Parse(u.URL)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || at.RawQuery != "" || at.User != nil {
		return fmt.Errorf("upstream %q: the url must be http:// or https:// with a host, without a query and a password",
			u.Name)
	}
	u.URL = strings.TrimRight(u.URL, "/")
	if u.API == FormatAnthropic {
		u.URL = strings.TrimSuffix(u.URL, "/v1")
	}
	for _, pattern := range u.Models {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			return fmt.Errorf("upstream %q: %q is no pattern of models", u.Name, pattern)
		}
	}
	return nil
}

// With returns the upstreams, followed by others of whose name there is none.
func (all Upstreams) With(others ...Upstream) (Upstreams, error) {
	all = slices.Clone(all)
	for _, u := range others {
		if slices.ContainsFunc(all, func(a Upstream) bool { return a.Name == u.Name }) {
			continue
		}
		if err := u.complete(); err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	return all, nil
}

// Named returns the upstream with a name.
func (all Upstreams) Named(name string) (Upstream, bool) {
	i := slices.IndexFunc(all, func(u Upstream) bool { return u.Name == name })
	if i < 0 {
		return Upstream{}, false
	}
	return all[i], true
}

// For returns the upstream for a model in a format, and the model's name there: the upstream whose name and a slash
// begin the model's name, which then is the rest; else the first one that serves the model.
func (all Upstreams) For(format, model string) (u Upstream, name string, found bool) {
	if format == FormatResponses {
		format = FormatOpenAI
	}
	if prefix, rest, has := strings.Cut(model, "/"); has {
		if u, found := all.Named(prefix); found && u.API == format && rest != "" {
			return u, rest, true
		}
	}
	for _, u := range all {
		if u.API == format && u.Serves(model) {
			return u, model, true
		}
	}
	return Upstream{}, model, false
}

// Serves reports whether the server may ask the upstream for a model with its own key.
func (u Upstream) Serves(model string) bool {
	return len(u.Models) == 0 || slices.ContainsFunc(u.Models, func(pattern string) bool {
		matches, _ := path.Match(strings.ReplaceAll(pattern, "/", "\x00"), strings.ReplaceAll(model, "/", "\x00"))
		return matches
	})
}

// IsOwn reports whether the upstream is at a provider's own address, which asks for a credential.
func (u Upstream) IsOwn() bool { return u.URL == openAIURL || u.URL == anthropicURL }

// Client returns a client of the upstream. preset is the model of requests that name none.
func (u Upstream) Client(preset string, maxAnswerBytes int64) (Client, error) {
	c := Config{BaseURL: u.URL, APIKey: u.Key, Model: preset, MaxAnswerBytes: maxAnswerBytes}
	if u.API == FormatAnthropic {
		return NewAnthropic(c)
	}
	c.Model = cmp.Or(preset, "the agent's model") // it is checked, and then replaced by that of each request
	return NewOpenAI(c)
}
