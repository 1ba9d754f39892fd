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
	"slices"

	"github.com/loci-memory/loci/compaction/lab/transcript"
)

// importCmd takes in what other programs stored.
type importCmd struct {
	Letta    importLettaCmd    `cmd:"" help:"Import the database of a Letta server. Again, it adds what is new only."`
	Sessions importSessionsCmd `cmd:"" help:"Take recorded sessions into an agent. Again, it adds what is new only."`
}

// importSessionsCmd takes recorded sessions into an agent, each as a conversation.
type importSessionsCmd struct {
	remote
	Paths []string `arg:"" help:"Files, and directories whose files are read: as loci lab replay reads them."`
	Agent string   `help:"ID of the agent; a new one is made and its ID printed if there is none."`
	Name  string   `default:"Imported sessions" help:"Name of a new agent."`
}

// Bounds of a request.
const (
	importBatch      = 500     // messages
	importBatchBytes = 8 << 20 // of the messages, but for one that is larger
)

// imported counts what an import did.
type imported struct {
	files, sessions, added, there int
	left                          map[string]int // entries and parts that are no messages, by kind
	refused                       []string       // why files or sessions were left out
}

// refusals are the statuses of answers that say that a session cannot be taken in. Others end the import.
var refusals = []int{http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity}

// Run implements the command. A file that cannot be read is reported with its line, and the others are imported.
func (c importSessionsCmd) Run(ctx context.Context, s streams) error {
	paths, err := filesOf(c.Paths)
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		return errors.New("there is no file to import")
	}
	out := imported{left: map[string]int{}}
	for _, path := range paths {
		sessions, err := readTranscripts([]string{path})
		if err != nil {
			out.refused = append(out.refused, err.Error())
			continue
		}
		out.files++
		if c.Agent == "" {
			if c.Agent, err = c.newAgent(ctx); err != nil {
				return err
			}
			fmt.Fprintln(s.out, c.Agent)
		}
		for _, t := range sessions {
			err := c.session(ctx, t, &out)
			if no, ok := errors.AsType[*refusedRequest](err); ok && slices.Contains(refusals, no.status) {
				out.refused = append(out.refused, t.Name+": "+no.Error())
				continue
			}
			if err != nil {
				return fmt.Errorf("%s: %w. Run the command again with --agent %s: what was taken in is not taken again", t.Name,
					err, c.Agent)
			}
		}
	}
	return out.print(s)
}

// filesOf returns the files of paths, those of directories in their order.
func filesOf(paths []string) (all []string, err error) {
	for _, path := range paths {
		err := filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
			if err == nil && entry.Type().IsRegular() {
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
	var made struct{ ID string }
	err = c.call(ctx, "/v1/agents/", bytes.NewReader(body), "application/json", &made)
	return made.ID, err
}

// session takes in a session: the messages that the agent does not have yet.
func (c importSessionsCmd) session(ctx context.Context, t transcript.Transcript, out *imported) error {
	messages, left := t.Wire()
	conversation, err := c.conversation(ctx, t)
	if err != nil {
		return err
	}
	for len(messages) > 0 {
		n := batchOf(messages)
		added, there, err := c.send(ctx, conversation, messages[:n])
		if err != nil {
			return err
		}
		out.added, out.there, messages = out.added+added, out.there+there, messages[n:]
	}
	out.sessions++
	for _, kinds := range []map[string]int{t.LeftOut, left} {
		for kind, n := range kinds {
			out.left[cmp.Or(kind, "entries without a type")] += n
		}
	}
	if t.System != "" {
		out.left["system prompts"]++
	}
	return nil
}

// batchOf returns how many of some messages go in one request.
func batchOf(messages []json.RawMessage) int {
	bytes := 0
	for i, m := range messages {
		if bytes += len(m); i == importBatch || i > 0 && bytes > importBatchBytes {
			return i
		}
	}
	return len(messages)
}

// conversation returns the conversation of a session, whose summary names it. It makes one if there is none.
func (c importSessionsCmd) conversation(ctx context.Context, t transcript.Transcript) (string, error) {
	const page = 100
	name := fmt.Sprintf("%s (%s)", t.Name, t.Key())
	type conversation struct{ ID, Summary string }
	for after := ""; ; {
		var list []conversation
		query := url.Values{"agent_id": {c.Agent}, "limit": {fmt.Sprint(page)}}
		if after != "" {
			query.Set("after", after)
		}
		if err := c.get(ctx, "/v1/conversations/?"+query.Encode(), &list); err != nil {
			return "", err
		}
		for _, found := range list {
			if found.Summary == name {
				return found.ID, nil
			}
		}
		if len(list) < page {
			break
		}
		after = list[len(list)-1].ID
	}
	body, err := json.Marshal(map[string]string{"summary": name})
	if err != nil {
		return "", err
	}
	var made conversation
	err = c.call(ctx, "/v1/conversations/?agent_id="+url.QueryEscape(c.Agent), bytes.NewReader(body), "application/json",
		&made)
	return made.ID, err
}

// send appends messages to a conversation, and returns how many are new and how many were there.
func (c importSessionsCmd) send(ctx context.Context, conversation string, messages []json.RawMessage) (added, there int,
	err error) {
	body, err := json.Marshal(map[string]any{"conversation_id": conversation, "messages": messages})
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
			there++
		} else {
			added++
		}
	}
	return added, there, err
}

// print prints what was imported, and returns an error if something was refused.
func (out imported) print(s streams) error {
	fmt.Fprintf(s.out, "%d files, %d sessions: %d messages added, %d already there\n", out.files, out.sessions, out.added,
		out.there)
	for _, kind := range slices.Sorted(maps.Keys(out.left)) {
		fmt.Fprintf(s.out, "left out: %d %s\n", out.left[kind], kind)
	}
	for _, why := range out.refused {
		fmt.Fprintln(s.err, "skipped:", why)
	}
	if len(out.refused) > 0 {
		return fmt.Errorf("%d files or sessions were skipped", len(out.refused))
	}
	return nil
}
