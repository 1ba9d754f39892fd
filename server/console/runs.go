package console

import (
	"net/http"
	"net/url"
	"time"
)

func runRoutes() map[string]handler {
	return map[string]handler{"GET jobs": jobsPage, "POST jobs/{run}/cancel": cancelRun,
		"POST reembedding/start": startReembedding, "POST reembedding/cancel": cancelReembedding}
}

// run is a run of an agent in the API's form.
type run struct {
	ID             string     `json:"id"`
	AgentID        string     `json:"agent_id"`
	ConversationID string     `json:"conversation_id"`
	Status         string     `json:"status"`
	StopReason     string     `json:"stop_reason"`
	Background     bool       `json:"background"`
	CreatedAt      time.Time  `json:"created_at"`
	CompletedAt    *time.Time `json:"completed_at"`
	Nanoseconds    *int64     `json:"total_duration_ns"`
	Error          *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// Why says why a run stopped.
func (r run) Why() string {
	if r.Error != nil && r.Error.Message != "" {
		return r.Error.Message
	}
	return r.StopReason
}

// Working reports whether the run has not ended.
func (r run) Working() bool { return r.Status == "created" || r.Status == "running" }

// Pill is the CSS class for the run's status.
func (r run) Pill() string {
	return map[string]string{"completed": "good", "failed": "bad"}[r.Status]
}

// Seconds is how long the run took; 0 if it has not ended.
func (r run) Seconds() float64 {
	if r.Nanoseconds == nil {
		return 0
	}
	return time.Duration(*r.Nanoseconds).Seconds()
}

// AgentURL is the address of the page of the run's agent.
func (r run) AgentURL() string { return base + "agents/" + r.AgentID }

// runStatuses are the statuses of runs.
var runStatuses = []string{"created", "running", "completed", "failed", "cancelled"}

// runList is a page of runs.
type runList struct {
	list[run]
	Status   string
	Statuses []string
}

func jobsPage(v *visit) error {
	p := page{Title: "Jobs", Tab: "Jobs", Sub: "What the server works on, and what became of it.", Cards: []card{
		{Name: "jobs-runs", Title: "Runs of agents", Width: "w12", Live: "5s", Load: loaded(jobsRunsCard, listRuns)},
		{Name: "jobs-files", Title: "Files that failed", Width: "w7", Live: "10s", Load: loaded(needsCard,
			func(v *visit) ([]need, error) { return failedFiles(v, 20) })},
	}}
	if v.caller.Operator {
		p.Cards = append(p.Cards, card{Name: "overview-queues", Title: "Queues", Width: "w5", Live: "5s",
			Load: loaded(overviewQueuesCard, queues)},
			card{Name: "jobs-reembedding", Title: "Vectors of another model", Width: "w12", Live: "5s",
				Load: loaded(jobsReembeddingCard, currentReembedding)})
	}
	if v.MayAdmin() {
		p.Cards = append(p.Cards, card{Name: "jobs-background", Title: "Background work", Width: "w12", Live: "5s",
			Load: loaded(jobsBackgroundCard, backgroundJobs)})
	}
	return v.show(p)
}

func listRuns(v *visit) (runList, error) {
	status, err := v.oneOf("status", runStatuses...)
	if err != nil {
		return runList{}, err
	}
	out := runList{Status: status, Statuses: runStatuses}
	query := url.Values{"order": {"desc"}}
	if status != "" {
		query.Set("statuses", status)
	}
	out.list, err = paged(v, "/v1/runs", query, func(r run) string { return r.ID })
	return out, err
}

func cancelRun(v *visit) error {
	if err := v.send(http.MethodPatch, "/v1/jobs/"+v.id("run")+"/cancel", nil, nil); err != nil {
		return err
	}
	return v.done(base+"jobs", "cancelled")
}
