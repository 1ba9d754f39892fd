package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/loci-memory/loci/compaction/lab/transcript"
)

// importCmd imports what other programs stored.
type importCmd struct {
	Letta    importLettaCmd    `cmd:"" help:"Import the database of a Letta server. Again, it adds what is new only."`
	Sessions importSessionsCmd `cmd:"" help:"Take recorded sessions into an agent. Again, it adds what is new only."`
}

// importSessionsCmd imports recorded sessions into an agent, each as a conversation.
type importSessionsCmd struct {
	remote
	asked
	Paths []string `arg:"" help:"Files, and directories whose files are read: as loci lab replay reads them."`
	Agent string   `type:"agent" help:"Name or ID of the agent; without it a new one is made and its ID printed."`
	Name  string   `default:"Imported sessions" help:"Name of a new agent."`
}

// Limits of a request.
const (
	importBatch      = 500     // messages
	importBatchBytes = 8 << 20 // of the messages; a single larger message is allowed
)

// maxChanged bounds the messages of a session that are left out because other messages have their ids. Each costs a
// request.
const maxChanged = 100

// imported counts the results of an import.
type imported struct {
	AgentID  string         `json:"agent_id"`
	Files    int            `json:"files"`
	Sessions int            `json:"sessions"`
	Added    int            `json:"messages_added"`
	There    int            `json:"messages_already_there"`
	Left     map[string]int `json:"left_out"` // entries and parts that are no messages, by kind
	Refused  []string       `json:"skipped"`  // reasons why files, sessions or messages were skipped
	Partial  bool           `json:"partial,omitempty"`

	line *progressLine
}

// refusals are the statuses that mean a session cannot be imported. Other errors end the import.
var refusals = []int{http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity}

// Run reports a file that it cannot read, with the line, and imports the other files. If it is interrupted, it prints
// what was imported until then.
func (c importSessionsCmd) Run(ctx context.Context, s streams) error {
	paths, err := filesOf(c.Paths)
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		return errors.New("there is no file to import")
	}
	if c.Agent != "" {
		if c.Agent, err = c.agentID(ctx, c.Agent); err != nil {
			return err
		}
	}
	result := imported{Left: map[string]int{}, Refused: []string{}, line: newProgressLine(s.err)}
	for i, path := range paths {
		if err = c.file(ctx, s, path, &result); err != nil {
			break
		}
		result.line.show(fmt.Sprintf("%d of %d files: %d messages added", i+1, len(paths), result.Added))
	}
	result.line.end()
	result.AgentID, result.Partial = c.Agent, err != nil
	if err == nil || result.Added+result.There > 0 {
		err = cmp.Or(err, result.print(s, c.asked))
	}
	return err
}

// file imports the sessions in a file.
func (c *importSessionsCmd) file(ctx context.Context, s streams, path string, result *imported) error {
	sessions, broken, err := readTranscripts(ctx, []string{path})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		result.Refused = append(result.Refused, err.Error())
		return nil
	}
	for _, line := range broken {
		result.Refused = append(result.Refused, line.Error())
	}
	result.Files++
	if c.Agent == "" {
		if c.Agent, err = c.newAgent(ctx); err != nil {
			return err
		}
		if !c.JSON {
			fmt.Fprintln(s.out, c.Agent)
		}
	}
	for _, t := range sessions {
		err := c.session(ctx, t, result)
		if no, ok := errors.AsType[*refusedRequest](err); ok && slices.Contains(refusals, no.status) {
			result.Refused = append(result.Refused, t.Name+": "+err.Error())
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w. Run the command again with --agent %s: what was taken in is not taken again", t.Name, err,
				c.Agent)
		}
	}
	return nil
}

// filesOf returns the files of paths, which may be pipes, and the regular files in directories, in order.
func filesOf(paths []string) (all []string, err error) {
	for _, path := range paths {
		err := filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
			if err == nil && (entry.Type().IsRegular() || name == path && !entry.IsDir()) {
				all = append(all, name)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (c importSessionsCmd) newAgent(ctx context.Context) (string, error) {
	body, err := json.Marshal(map[string]string{"name": c.Name})
	if err != nil {
		return "", err
	}
	var created struct{ ID string }
	err = c.call(ctx, "/v1/agents/", bytes.NewReader(body), "application/json", &created)
	return created.ID, err
}

// session imports the messages of a session that the agent does not have yet.
func (c importSessionsCmd) session(ctx context.Context, t transcript.Transcript, out *imported) error {
	messages, leftOut := t.Wire()
	conversation, err := c.conversation(ctx, t)
	if err != nil {
		return err
	}
	for changed := 0; len(messages) > 0; {
		n := batchOf(messages)
		added, repeated, err := c.send(ctx, conversation, messages[:n])
		if index, ok := contradicted(err, messages[:n]); ok && changed < maxChanged {
			out.Refused = append(out.Refused, fmt.Sprintf("%s: message %d (%s): %v", t.Name, messages[index].Place,
				messages[index].OwnID, err))
			messages = slices.Delete(messages, index, index+1)
			changed++
			continue
		}
		if err != nil {
			return fmt.Errorf("from message %d on: %w", messages[0].Place, err)
		}
		out.Added, out.There, messages = out.Added+added, out.There+repeated, messages[n:]
		out.line.show(fmt.Sprintf("%s: %d messages added, %d to go", t.Name, out.Added, len(messages)))
	}
	out.Sessions++
	for _, kinds := range []map[string]int{t.LeftOut, leftOut} {
		for kind, n := range kinds {
			out.Left[cmp.Or(kind, "entries without a type")] += n
		}
	}
	if t.System != "" {
		out.Left["system prompts"]++
	}
	return nil
}

// placeInRequest finds the message that an error is about.
var placeInRequest = regexp.MustCompile(`messages\[(\d+)\]`)

// contradicted returns the index of a message that the conversation already has with another content, if the request
// failed for that reason. ok is false if the message has no id of its own: the messages after it would get other ids
// than before, and would be imported twice.
func contradicted(err error, messages []transcript.WireMessage) (index int, ok bool) {
	no, isRefused := errors.AsType[*refusedRequest](err)
	if !isRefused || no.status != http.StatusConflict {
		return 0, false
	}
	place := placeInRequest.FindStringSubmatch(no.detail)
	if place == nil {
		return 0, false
	}
	index, err = strconv.Atoi(place[1])
	return index, err == nil && index < len(messages) && messages[index].OwnID != ""
}

// batchOf returns how many of the messages go into the next request.
func batchOf(messages []transcript.WireMessage) int {
	bytes := 0
	for i, m := range messages {
		if bytes += len(m.JSON); i == importBatch || i > 0 && bytes > importBatchBytes {
			return i
		}
	}
	return len(messages)
}

// conversation returns the conversation of a session, which it finds by the key at the end of the conversation's
// summary. It creates the conversation if there is none.
func (c importSessionsCmd) conversation(ctx context.Context, t transcript.Transcript) (string, error) {
	const page = 100
	key := "(" + t.Key() + ")"
	type conversation struct{ ID, Summary string }
	for cursor := ""; ; {
		var list []conversation
		query := url.Values{"agent_id": {c.Agent}, "limit": {fmt.Sprint(page)}}
		if cursor != "" {
			query.Set("after", cursor)
		}
		if err := c.get(ctx, "/v1/conversations/?"+query.Encode(), &list); err != nil {
			return "", err
		}
		for _, existing := range list {
			if strings.HasSuffix(existing.Summary, key) {
				return existing.ID, nil
			}
		}
		if len(list) < page {
			break
		}
		cursor = list[len(list)-1].ID
	}
	body, err := json.Marshal(map[string]string{"summary": t.Name + " " + key})
	if err != nil {
		return "", err
	}
	var created conversation
	err = c.call(ctx, "/v1/conversations/?agent_id="+url.QueryEscape(c.Agent), bytes.NewReader(body), "application/json",
		&created)
	return created.ID, err
}

// send appends messages to a conversation. It returns how many are new, and how many the conversation had already.
func (c importSessionsCmd) send(ctx context.Context, conversation string, messages []transcript.WireMessage) (added,
	repeated int, err error) {
	list := make([]json.RawMessage, len(messages))
	for i, m := range messages {
		list[i] = m.JSON
	}
	body, err := json.Marshal(map[string]any{"conversation_id": conversation, "messages": list})
	if err != nil {
		return 0, 0, err
	}
	var stored struct {
		Messages []struct {
			Repeated bool `json:"repeated"`
		} `json:"messages"`
	}
	err = c.call(ctx, "/v1/agents/"+url.PathEscape(c.Agent)+"/messages/capture", bytes.NewReader(body),
		"application/json", &stored)
	for _, m := range stored.Messages {
		if m.Repeated {
			repeated++
		} else {
			added++
		}
	}
	return added, repeated, err
}

// print prints what was imported. It returns an error if something was skipped.
func (out imported) print(s streams, a asked) error {
	for _, reason := range out.Refused {
		fmt.Fprintln(s.err, "skipped:", reason)
	}
	if a.JSON {
		if err := printJSON(s, out); err != nil {
			return err
		}
		return out.skipped()
	}
	if out.Partial {
		fmt.Fprint(s.out, "partial, until it ended early: ")
	}
	fmt.Fprintf(s.out, "%d files, %d sessions: %d messages added, %d already there\n", out.Files, out.Sessions, out.Added,
		out.There)
	for _, kind := range slices.Sorted(maps.Keys(out.Left)) {
		fmt.Fprintf(s.out, "left out: %d %s\n", out.Left[kind], kind)
	}
	return out.skipped()
}

// skipped returns an error if something was skipped.
func (out imported) skipped() error {
	if len(out.Refused) > 0 {
		return fmt.Errorf("%d files, sessions, messages or lines were skipped", len(out.Refused))
	}
	return nil
}
