package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// beamKinds are BEAM's abilities, in its words. Abstention is missing, because its questions have no evidence.
var beamKinds = []string{"contradiction_resolution", "event_ordering", "information_extraction",
	"instruction_following", "knowledge_update", "multi_session_reasoning", "preference_following", "summarization",
	"temporal_reasoning"}

// beamRows are the rows that are reported for BEAM: one for each ability, and one for all.
func beamRows() (rows []recallRow) {
	for _, kind := range beamKinds {
		rows = append(rows, recallRow{strings.ReplaceAll(kind, "_", " "), []string{kind}})
	}
	return append(rows, recallRow{"all", beamKinds})
}

// readBeam reads the chats in a folder with BEAM's layout: at any depth, folders with a chat.json, and beside it
// probing_questions.json or probing_questions/probing_questions.json.
func readBeam(root string) (all []dialogue, err error) {
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "chat.json" {
			return err
		}
		folder := filepath.Dir(path)
		name, err := filepath.Rel(filepath.Dir(root), folder)
		if err != nil {
			return err
		}
		d, err := readBeamChat(folder, name)
		if err != nil {
			return fmt.Errorf("read %s: %w", folder, err)
		}
		all = append(all, d)
		return nil
	})
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s has no chat.json below it", root)
	}
	return all, err
}

func readBeamChat(folder, name string) (d dialogue, err error) {
	d.name = strings.ReplaceAll(filepath.ToSlash(name), "/", " ")
	chat, err := os.ReadFile(filepath.Join(folder, "chat.json")) // #nosec G304 -- a folder that the user names
	if err != nil {
		return d, err
	}
	questions, err := os.ReadFile(filepath.Join(folder, "probing_questions", "probing_questions.json")) // #nosec G304
	if errors.Is(err, fs.ErrNotExist) {
		questions, err = os.ReadFile(filepath.Join(folder, "probing_questions.json")) // #nosec G304
	}
	if err != nil {
		return d, err
	}
	if d.sessions, err = beamSessions(chat); err != nil {
		return d, fmt.Errorf("chat.json: %w", err)
	}
	if d.questions, err = beamQuestions(questions); err != nil {
		return d, fmt.Errorf("probing_questions.json: %w", err)
	}
	return d, nil
}

// beamMessage is a message of a chat. Most messages have no time; they have the time of the message before.
type beamMessage struct {
	Role       string          `json:"role"`
	ID         json.RawMessage `json:"id"`
	TimeAnchor string          `json:"time_anchor"`
	Content    string          `json:"content"`
}

// beamSessions finds the messages of a chat. In chats of up to a million tokens, they stand in turns of batches; in
// chats of ten million, the batches are parts of plans. A list with messages is a session.
func beamSessions(chat []byte) (sessions [][]turn, err error) {
	var day time.Time
	count := 0 // messages since the beginning of the day
	message := func(text json.RawMessage) (turn, error) {
		var m beamMessage
		if err := json.Unmarshal(text, &m); err != nil {
			return turn{}, err
		}
		if m.TimeAnchor != "" {
			anchor, err := time.Parse("January-2-2006", m.TimeAnchor)
			if err != nil {
				return turn{}, err
			}
			if !anchor.Equal(day) {
				day, count = anchor, 0
			}
		}
		t := turn{id: string(m.ID), role: m.Role, text: m.Content}
		if !day.IsZero() {
			t.at = day.Add(9*time.Hour + time.Duration(count)*time.Minute)
			count++
		}
		return t, nil
	}
	var walk func(text json.RawMessage) error
	walk = func(text json.RawMessage) error {
		var list []json.RawMessage
		var fields map[string]json.RawMessage
		if json.Unmarshal(text, &fields) == nil {
			for _, name := range sortedNames(fields) {
				list = append(list, fields[name])
			}
		} else if json.Unmarshal(text, &list) != nil {
			list = nil // a number or a text, such as batch_number
		}
		var session []turn
		for _, item := range list {
			var m beamMessage
			if json.Unmarshal(item, &m) != nil || m.Role == "" {
				if err := walk(item); err != nil {
					return err
				}
				continue
			}
			t, err := message(item)
			if err != nil {
				return err
			}
			session = append(session, t)
		}
		if len(session) > 0 {
			sessions = append(sessions, session)
		}
		return nil
	}
	if err := walk(chat); err != nil {
		return nil, err
	}
	if len(sessions) == 0 {
		return nil, errors.New("there is no message in it")
	}
	return sessions, nil
}

// sortedNames returns the names of fields in numerical order: plan-2 before plan-10.
func sortedNames(fields map[string]json.RawMessage) (names []string) {
	for name := range fields {
		names = append(names, name)
	}
	number := func(name string) int {
		n, err := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:])
		if err != nil {
			return -1
		}
		return n
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(number(a)-number(b), strings.Compare(a, b)) })
	return names
}

// beamQuestions returns the questions that name the messages with their answers.
func beamQuestions(text []byte) (questions []question, err error) {
	var abilities map[string][]struct {
		Question string          `json:"question"`
		Sources  json.RawMessage `json:"source_chat_ids"`
	}
	if err := json.Unmarshal(text, &abilities); err != nil {
		return nil, err
	}
	for _, kind := range beamKinds {
		for _, q := range abilities[kind] {
			questions = append(questions, question{kind, q.Question, beamSources(q.Sources)})
		}
	}
	if len(questions) == 0 {
		return nil, errors.New("there is no question in it")
	}
	return questions, nil
}

// beamSources returns the ids of messages in a list, or in lists by part of the question. Each id occurs once.
func beamSources(text json.RawMessage) (ids []string) {
	var list []json.RawMessage
	var parts map[string]json.RawMessage
	switch {
	case len(text) == 0 || string(text) == "null":
	case json.Unmarshal(text, &list) == nil:
		for _, item := range list {
			ids = append(ids, beamSources(item)...)
		}
	case json.Unmarshal(text, &parts) == nil:
		for _, name := range sortedNames(parts) {
			ids = append(ids, beamSources(parts[name])...)
		}
	default:
		ids = []string{string(text)}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
