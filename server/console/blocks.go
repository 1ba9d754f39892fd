package console

import (
	"strconv"
	"time"
	"unicode/utf8"
)

// block is a block of core memory.
type block struct {
	ID          string    `json:"id"`
	Label       string    `json:"label"`
	Value       string    `json:"value"`
	Description string    `json:"description"`
	Limit       int       `json:"limit"`
	ReadOnly    bool      `json:"read_only"`
	Version     int       `json:"version"`
	UpdatedAt   time.Time `json:"updated_at"`
}

// Chars is the number of characters in the block.
func (b block) Chars() int { return utf8.RuneCountInString(b.Value) }

// Width is how full the block is, in percent.
func (b block) Width() float64 { return width(b.Chars(), b.Limit) }

// Class is the CSS class of the block's meter.
func (b block) Class() string {
	if b.Width() >= 90 {
		return "near"
	}
	return ""
}

// Text says how full the block is.
func (b block) Text() string { return number(b.Chars()) + " of " + number(b.Limit) + " characters" }

// meterView holds the data for the template meter.
type meterView struct {
	Class, Label string
	Width        float64
}

// Meter shows how full the block is.
func (b block) Meter() meterView { return meterView{b.Class(), b.Text(), b.Width()} }

// Meter shows how full the window is.
func (w window) Meter() meterView { return meterView{w.Class(), w.Label(), w.Share()} }

func blockRoutes() map[string]handler {
	return map[string]handler{
		"GET blocks/{block}":          blockPage,
		"POST blocks/{block}":         saveBlock,
		"POST blocks/{block}/restore": restoreBlock,
	}
}

func agentBlocks(v *visit) (blocks []block, err error) {
	return blocks, v.get("/v1/agents/"+v.id("agent")+"/core-memory/blocks?limit=100", &blocks)
}

// blockVersion is a version of a block.
type blockVersion struct {
	Version    int       `json:"version"`
	Value      string    `json:"value"`
	Label      string    `json:"label"`
	Author     string    `json:"author"`
	At         time.Time `json:"at"`
	Provenance struct {
		AgentID string `json:"agent_id"`
		Tool    string `json:"tool"`
	} `json:"provenance"`
}

// blockHistory is a block with its versions, newest first.
type blockHistory struct {
	Block    block
	Versions []blockVersion
}

// blockDraft is a block with a person's text that the API refused.
type blockDraft struct {
	block
	Draft   string
	Based   int // the version that the person edited
	Refused string
}

func blockPage(v *visit) error { return v.showBlock("", "", 0) }

// showBlock shows a block. draft is a text that a person wrote, and refused why it was not stored; both may be empty.
// based is the version that the person edited.
func (v *visit) showBlock(draft, refused string, based int) error {
	var b block
	if err := v.get("/v1/blocks/"+v.id("block"), &b); err != nil {
		return err
	}
	if refused == "" {
		draft, based = b.Value, b.Version
	}
	p := page{Title: b.Label, Tab: "Agents", Sub: b.Description, Crumbs: []link{{"Agents", base + "agents"}}}
	p.Cards = []card{
		{Name: "block-edit", Title: "Text", Width: "w8", Load: known(blockEditCard, blockDraft{b, draft, based, refused})},
		{Name: "block-agents", Title: "Shared by", Width: "w4", Load: loaded(blockAgentsCard,
			func(v *visit) (agents []agent, err error) {
				return agents, v.get("/v1/blocks/"+v.id("block")+"/agents?limit=100", &agents)
			})},
		{Name: "block-versions", Title: "Versions", Width: "w5", Load: loaded(blockVersionsCard,
			func(v *visit) (blockHistory, error) {
				history := blockHistory{Block: b}
				err := v.get("/v1/blocks/"+v.id("block")+"/versions?limit=50", &history.Versions)
				return history, err
			})},
		{Name: "block-diff", Title: "What changed", Width: "w7", Load: loaded(blockDiffCard,
			func(v *visit) (diffView, error) { return blockDiff(v, b) })},
	}
	if refused != "" {
		v.render(422, p)
		return nil
	}
	return v.show(p)
}

// diffLine is a line of a comparison.
type diffLine struct{ Class, Text string }

// diffView compares two versions.
type diffView struct {
	From, To int
	Lines    []diffLine
	Only     bool // there is only one version
}

func blockDiff(v *visit, b block) (diffView, error) {
	older, err := v.whole("from")
	if err != nil {
		return diffView{}, err
	}
	newer, err := v.whole("to")
	if err != nil {
		return diffView{}, err
	}
	if newer == 0 {
		newer = int64(b.Version)
	}
	if older == 0 {
		older = newer - 1
	}
	if older < 1 {
		return diffView{Only: true}, nil
	}
	var diff struct{ Diff string }
	err = v.get("/v1/blocks/"+v.id("block")+"/diff?from="+strconv.FormatInt(older, 10)+"&to="+strconv.FormatInt(newer, 10),
		&diff)
	return diffView{From: int(older), To: int(newer), Lines: diffLines(diff.Diff)}, err
}

// saveBlock stores a person's text, unless the block was changed after the person opened the page.
func saveBlock(v *visit) error {
	text := newlines.Replace(v.r.PostFormValue("value"))
	version, err := strconv.Atoi(v.r.PostFormValue("version"))
	if err != nil {
		return &apiError{Status: 422, Detail: "The form does not say which version it changes. Open the page again."}
	}
	var b block
	err = v.send("PATCH", "/v1/blocks/"+v.id("block"), map[string]any{"value": text, "expected_version": version}, &b)
	if status := statusOf(err); status == 422 || status == 409 || status == 400 || status == 412 {
		return v.showBlock(text, err.Error(), version)
	} else if err != nil {
		return err
	}
	if b.Version == version {
		return v.done(base+"blocks/"+v.id("block"), "saved")
	}
	return v.done(base+"blocks/"+v.id("block")+"?undo="+strconv.Itoa(version), "saved")
}

// restoreBlock makes an earlier version the current one.
func restoreBlock(v *visit) error {
	version, err := strconv.Atoi(v.r.PostFormValue("version"))
	if err != nil {
		return &apiError{Status: 422, Detail: "The form does not say which version to restore."}
	}
	path := "/v1/blocks/" + v.id("block") + "/versions/" + strconv.Itoa(version) + "/restore"
	if err := v.send("POST", path, map[string]any{}, nil); err != nil {
		return err
	}
	return v.done(base+"blocks/"+v.id("block"), "restored")
}

// Undo is the version before the change that led to this page; 0 if there was no change.
func (v *visit) Undo() int {
	version, _ := strconv.Atoi(v.r.URL.Query().Get("undo"))
	return max(0, version)
}
