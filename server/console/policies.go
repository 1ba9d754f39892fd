package console

import (
	"net/http"
	"net/url"
	"time"
)

func policyRoutes() map[string]handler {
	return map[string]handler{"GET policies": policiesPage, "GET policies/replays/{replay}": replayReport}
}

// preset is a named policy.
type preset struct {
	Name        string       `json:"name"`
	Title       string       `json:"title"`
	Source      string       `json:"source"`
	Description string       `json:"description"`
	Steps       []policyStep `json:"steps"`
}

// replay compares policies on recorded sessions.
type replay struct {
	ID        string    `json:"id"`
	Status    string    `json:"status"`
	Why       string    `json:"why"`
	Model     string    `json:"model"`
	Parts     int       `json:"parts"`
	Done      int       `json:"parts_done"`
	CreatedAt time.Time `json:"created_at"`
}

// preview is what a policy would do to an agent's prompt.
type preview struct {
	Policy string `json:"policy"`
	Before int    `json:"tokens_before"`
	Tokens struct {
		Total int `json:"total"`
	} `json:"tokens"`
	Calls int `json:"model_calls"`
	Cost  struct {
		Kept int `json:"prefix_kept_tokens"`
	} `json:"cost"`
}

// previews compare policies on an agent's next prompt.
type previews struct {
	Agent agentChoice
	Rows  []preview
}

func policiesPage(v *visit) error {
	return v.show(page{Title: "Policies", Tab: "Policies", Sub: "How windows are kept from overflowing.", Cards: []card{
		{Name: "policies-preview", Title: "What each would do", Width: "w7",
			Load: loaded(policiesPreviewCard, previewPolicies)},
		{Name: "policies-replays", Title: "Reports of the lab", Width: "w5", Load: loaded(policiesReplaysCard,
			func(v *visit) (replays []replay, err error) {
				return replays, v.get("/v1/lab/replays?limit=20", &replays)
			})},
		{Name: "policies-presets", Title: "Presets", Width: "w12", Load: loaded(policiesPresetsCard, presets)},
	}})
}

func presets(v *visit) ([]preset, error) {
	var all struct {
		Policies []preset `json:"policies"`
	}
	err := v.get("/v1/policies", &all)
	return all.Policies, err
}

// previewPolicies asks what each preset would do to the prompt of the agent in the query.
func previewPolicies(v *visit) (out previews, err error) {
	if out.Agent, err = v.agentChoice(); err != nil || out.Agent.ID == "" {
		return out, err
	}
	var all struct {
		Policies []preset `json:"policies"`
	}
	if err := v.get("/v1/policies", &all); err != nil {
		return out, err
	}
	names := []string{}
	for _, p := range all.Policies {
		names = append(names, p.Name)
	}
	err = v.send(http.MethodPost, "/v1/agents/"+url.PathEscape(out.Agent.ID)+"/policies/preview",
		map[string]any{"policies": names}, &out.Rows)
	return out, err
}

// replayReport passes on a report of the lab: a whole page with its own style.
func replayReport(v *visit) error {
	v.w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:")
	r := v.request(http.MethodGet, "/v1/lab/replays/"+v.id("replay")+"/report.html", http.NoBody)
	v.console.api.ServeHTTP(v.w, r)
	return nil
}
