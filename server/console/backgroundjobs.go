package console

import (
	"net/http"
	"net/url"
	"strings"
	"time"
)

// jobStates are the states of background jobs.
var jobStates = []string{"waiting", "running", "retrying", "completed", "failed", "cancelled"}

// backgroundJob is a background job in the API's form.
type backgroundJob struct {
	ID          string     `json:"id"`
	Kind        string     `json:"kind"`
	State       string     `json:"state"`
	OrgName     string     `json:"org_name"`
	Attempt     int        `json:"attempt"`
	MaxAttempts int        `json:"max_attempts"`
	Done        *int64     `json:"done"`
	Total       *int64     `json:"total"`
	Error       string     `json:"error"`
	CreatedAt   time.Time  `json:"created_at"`
	EndedAt     *time.Time `json:"ended_at"`
}

// What names the kind of work.
func (j backgroundJob) What() string { return strings.ReplaceAll(j.Kind, "_", " ") }

// Pill is the CSS class for the job's state.
func (j backgroundJob) Pill() string {
	return map[string]string{"completed": "good", "failed": "bad", "retrying": "warn"}[j.State]
}

// Far says how far the job is; empty if unknown.
func (j backgroundJob) Far() string {
	switch {
	case j.Done != nil && j.Total != nil:
		return number(*j.Done) + " of " + number(*j.Total)
	case j.Done != nil:
		return number(*j.Done)
	case j.Attempt > 1:
		return "attempt " + number(j.Attempt) + " of " + number(j.MaxAttempts)
	}
	return ""
}

// backgroundJobList is a page of background jobs. The address's parameter job is its filter.
type backgroundJobList struct {
	list[backgroundJob]
	State  string
	States []string
}

func backgroundJobs(v *visit) (out backgroundJobList, err error) {
	state, err := v.oneOf("job", jobStates...)
	if err != nil {
		return out, err
	}
	query := url.Values{"limit": {"30"}}
	if state != "" {
		query.Set("state", state)
	}
	out = backgroundJobList{State: state, States: jobStates}
	err = v.get("/v1/admin/jobs?"+query.Encode(), &out.Items)
	return out, err
}

// reembedding is the progress of making vectors with another model, in the API's form.
type reembedding struct {
	State   string     `json:"state"`
	From    string     `json:"from_model"`
	FromDim int        `json:"from_dimension"`
	To      string     `json:"to_model"`
	ToDim   int        `json:"to_dimension"`
	Done    int64      `json:"done"`
	Total   *int64     `json:"total"`
	Refused int64      `json:"refused"`
	Error   *string    `json:"error"`
	Started *time.Time `json:"started_at"`
	Ended   *time.Time `json:"finished_at"`
}

// Meter shows the progress.
func (r reembedding) Meter() meterView {
	far := 0.0
	if r.Total != nil && *r.Total > 0 {
		far = min(100, 100*float64(r.Done)/float64(*r.Total))
	}
	return meterView{"", number(far) + " % of the vectors are made", far}
}

// Pill is the CSS class for the state.
func (r reembedding) Pill() string {
	switch {
	case r.State == "switched":
		return "good"
	case r.Error != nil:
		return "warn"
	}
	return ""
}

// Progress says how many texts have their vectors.
func (r reembedding) Progress() string {
	text := number(r.Done)
	if r.Total != nil {
		text += " of " + number(*r.Total)
	}
	text += " texts"
	if r.Refused > 0 {
		text += ", " + number(r.Refused) + " refused"
	}
	return text
}

// Ranking is the model by which searches rank.
func (r reembedding) Ranking() string {
	if r.State == "switched" {
		return r.To
	}
	return r.From
}

func currentReembedding(v *visit) (now reembedding, err error) {
	return now, v.get("/v1/admin/reembedding", &now)
}

func startReembedding(v *visit) error {
	if err := v.send(http.MethodPost, "/v1/admin/reembedding", nil, nil); err != nil {
		return err
	}
	return v.done(base+"jobs", "started")
}

func cancelReembedding(v *visit) error {
	if err := v.send(http.MethodDelete, "/v1/admin/reembedding", nil, nil); err != nil {
		return err
	}
	return v.done(base+"jobs", "cancelled")
}
