package console

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

func adminRoutes() map[string]handler {
	return map[string]handler{
		"GET keys":                        keysPage,
		"POST keys":                       createKey,
		"POST keys/{key}/revoke":          revokeKey,
		"GET organizations":               organizationsPage,
		"POST organizations":              createOrganization,
		"POST organizations/{org}/rename": renameOrganization,
		"POST organizations/{org}/delete": deleteOrganization,
	}
}

// apiKey is a key as the API shows it.
type apiKey struct {
	ID        string     `json:"id"`
	OrgID     string     `json:"org_id"`
	Name      string     `json:"name"`
	Prefix    string     `json:"prefix"`
	Scopes    []string   `json:"scopes"`
	AgentIDs  []string   `json:"agent_ids"`
	Operator  bool       `json:"operator"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at"`
	LastUsed  *time.Time `json:"last_used_at"`
	Key       string     `json:"key"` // of a new key only
}

func keysPage(v *visit) error { return v.showKeys(apiKey{}) }

// showKeys shows the keys, and the secret of one that was just made.
func (v *visit) showKeys(made apiKey) error {
	p := page{Title: "Keys", Tab: "Keys", Sub: "Who may use the API, and what each key may do."}
	if made.Key != "" {
		p.Cards = append(p.Cards, card{Name: "keys-made", Title: "The new key", Width: "w12",
			Load: func(*visit) (any, error) { return made, nil }})
	}
	p.Cards = append(p.Cards, card{Name: "keys-list", Title: "Keys", Width: "w12", Load: func(v *visit) (any, error) {
		return paged(v, "/v1/admin/keys", url.Values{"order": {"desc"}}, func(k apiKey) string { return k.ID })
	}})
	if v.MayAdmin() {
		p.Cards = append(p.Cards, card{Name: "keys-new", Title: "New key", Width: "w12",
			Load: func(*visit) (any, error) { return scopes, nil }})
	}
	if made.Key != "" {
		v.render(http.StatusOK, p)
		return nil
	}
	return v.show(p)
}

// createKey makes a key, and shows it once.
func createKey(v *visit) error {
	body := map[string]any{"name": v.r.PostFormValue("name"), "scopes": []string{v.r.PostFormValue("scope")}}
	if agents := splitTags(v.r.PostFormValue("agents")); len(agents) > 0 {
		body["agent_ids"] = agents
	}
	if end := v.r.PostFormValue("expires"); end != "" {
		day, err := time.Parse(time.DateOnly, end)
		if err != nil {
			return &apiError{Status: http.StatusUnprocessableEntity, Detail: "The end is not a date: " + end}
		}
		body["expires_at"] = day.AddDate(0, 0, 1)
	}
	var made apiKey
	if err := v.send(http.MethodPost, "/v1/admin/keys", body, &made); err != nil {
		return err
	}
	return v.showKeys(made)
}

func revokeKey(v *visit) error {
	if err := v.send(http.MethodDelete, "/v1/admin/keys/"+v.id("key"), nil, nil); err != nil {
		return err
	}
	return v.done(base+"keys", "deleted")
}

// organization is an organization as the API has it.
type organization struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"created_at"`
}

func organizationsPage(v *visit) error {
	return v.show(page{Title: "Organizations", Tab: "Organizations", Sub: "Each sees only its own memories.",
		Cards: []card{{Name: "orgs-list", Title: "Organizations", Width: "w12", Load: func(v *visit) (any, error) {
			return paged(v, "/v1/admin/orgs", url.Values{}, func(o organization) string { return o.ID })
		}}}})
}

func createOrganization(v *visit) error {
	err := v.send(http.MethodPost, "/v1/admin/orgs", map[string]any{"name": v.r.PostFormValue("name")}, nil)
	if err != nil {
		return err
	}
	return v.done(base+"organizations", "created")
}

// organizationPath is where the API changes the organization that the page's address names.
func (v *visit) organizationPath() string {
	return "/v1/admin/orgs?" + url.Values{"org_id": {v.r.PathValue("org")}}.Encode()
}

func renameOrganization(v *visit) error {
	body := map[string]any{"name": v.r.PostFormValue("name")}
	if err := v.send(http.MethodPatch, v.organizationPath(), body, nil); err != nil {
		return err
	}
	return v.done(base+"organizations", "renamed")
}

// deleteOrganization deletes an organization whose name the person has written.
func deleteOrganization(v *visit) error {
	var all []organization
	if err := v.get("/v1/admin/orgs?limit=1000", &all); err != nil {
		return err
	}
	at := slices.IndexFunc(all, func(o organization) bool { return o.ID == v.r.PathValue("org") })
	if v.caller.Operator && at >= 0 && strings.TrimSpace(v.r.PostFormValue("name")) != all[at].Name {
		return &apiError{Status: http.StatusUnprocessableEntity,
			Detail: "To delete the organization with everything in it, write its name, " + all[at].Name + "."}
	}
	if err := v.send(http.MethodDelete, v.organizationPath(), nil, nil); err != nil {
		return err
	}
	return v.done(base+"organizations", "deleted")
}
