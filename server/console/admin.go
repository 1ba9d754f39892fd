package console

import (
	"net/http"
	"net/url"
	"strconv"
	"time"
)

func adminRoutes() map[string]handler {
	return map[string]handler{
		"GET keys":               keysPage,
		"POST keys":              createKey,
		"POST keys/{key}/revoke": revokeKey,

		"POST sessions/{session}/end": endSession,
	}
}

// apiKey is a key in the API's form.
type apiKey struct {
	ID        string     `json:"id"`
	OrgID     string     `json:"org_id"`
	OrgName   string     `json:"org_name"`
	Name      string     `json:"name"`
	Prefix    string     `json:"prefix"`
	Scopes    []string   `json:"scopes"`
	AgentIDs  []string   `json:"agent_ids"`
	Operator  bool       `json:"operator"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at"`
	LastUsed  *time.Time `json:"last_used_at"`
	PerMinute *int       `json:"requests_per_minute"`
	AtOnce    *int       `json:"requests_at_once"`
	Key       string     `json:"key"` // set only for a new key
}

// Limits says how often the key may ask.
func (k apiKey) Limits() (text string) {
	if k.PerMinute == nil && k.AtOnce == nil {
		return "the server’s"
	}
	if k.PerMinute != nil {
		text = strconv.Itoa(*k.PerMinute) + " a minute "
	}
	if k.AtOnce != nil {
		text += strconv.Itoa(*k.AtOnce) + " at once"
	}
	return text
}

func keysPage(v *visit) error { return v.showKeys(apiKey{}) }

// showKeys shows the keys. created is a key that was just created, with its secret; it may be empty.
func (v *visit) showKeys(created apiKey) error {
	p := page{Title: "Keys", Tab: "Keys", Sub: "Who may use the API, and what each key may do."}
	if created.Key != "" {
		p.Cards = append(p.Cards, card{Name: "keys-made", Title: "The new key", Width: "w12",
			Load: known(keysMadeCard, created)})
	}
	p.Cards = append(p.Cards, card{Name: "keys-list", Title: "Keys", Width: "w12", Load: loaded(keysListCard,
		func(v *visit) (list[apiKey], error) {
			return paged(v, "/v1/admin/keys", url.Values{"order": {"desc"}}, func(k apiKey) string { return k.ID })
		})})
	if v.MayAdmin() && v.key != "" {
		p.Cards = append(p.Cards, card{Name: "sessions-list", Title: "Who is signed in here", Width: "w12",
			Load: loaded(sessionsListCard, func(v *visit) (all []consoleSession, err error) {
				return all, v.get("/v1/admin/sessions?order=desc&limit=100", &all)
			})})
	}
	if v.MayAdmin() {
		p.Cards = append(p.Cards, card{Name: "keys-new", Title: "New key", Width: "w12",
			Load: func(*visit) (show, error) { return keysNewCard, nil }})
	}
	if created.Key != "" {
		v.render(http.StatusOK, p)
		return nil
	}
	return v.show(p)
}

// createKey creates a key, and shows it this once.
func createKey(v *visit) error {
	body := map[string]any{"name": v.r.PostFormValue("name"), "scopes": []string{v.r.PostFormValue("scope")}}
	if agents := splitTags(v.r.PostFormValue("agents")); len(agents) > 0 {
		body["agent_ids"] = agents
	}
	if lastDay := v.r.PostFormValue("expires"); lastDay != "" {
		day, err := time.Parse(time.DateOnly, lastDay)
		if err != nil {
			return &apiError{Status: http.StatusUnprocessableEntity, Detail: "The end is not a date: " + lastDay}
		}
		body["expires_at"] = day.AddDate(0, 0, 1)
	}
	var created apiKey
	if err := v.send(http.MethodPost, "/v1/admin/keys", body, &created); err != nil {
		return err
	}
	return v.showKeys(created)
}

// consoleSession is a session of the console in the API's form.
type consoleSession struct {
	ID        string    `json:"id"`
	KeyName   string    `json:"key_name"`
	OrgName   string    `json:"org_name"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
}

func endSession(v *visit) error {
	if err := v.send(http.MethodDelete, "/v1/admin/sessions/"+v.id("session"), nil, nil); err != nil {
		return err
	}
	return v.done(base+"keys", "ended")
}

func revokeKey(v *visit) error {
	if err := v.send(http.MethodDelete, "/v1/admin/keys/"+v.id("key"), nil, nil); err != nil {
		return err
	}
	return v.done(base+"keys", "deleted")
}
