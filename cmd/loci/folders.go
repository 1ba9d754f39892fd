package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/loci-memory/loci/files"
)

// foldersCmd works on the folders of a running server.
type foldersCmd struct {
	List   foldersListCmd   `cmd:"" help:"List the folders."`
	Create foldersCreateCmd `cmd:"" help:"Create a folder, and print its ID."`
	Delete foldersDeleteCmd `cmd:"" help:"Delete a folder with its files."`
}

type foldersListCmd struct {
	remote
	asked
}

func (c foldersListCmd) Run(ctx context.Context, s streams) error {
	all, err := listAll[files.Folder](ctx, c.remote, "/v1/folders", url.Values{})
	if err != nil {
		return err
	}
	return printList(s, c.asked, all, "ID | NAME | CREATED | DESCRIPTION", func(f files.Folder) []string {
		return []string{f.ID, f.Name, shownTime(&f.CreatedAt), textOf(f.Description)}
	})
}

type foldersCreateCmd struct {
	remote
	asked
	Name        string `arg:"" help:"Name of the folder."`
	Description string `help:"What the folder has; agents read it."`
	Skills      bool   `help:"The files SKILL.md in it are skills of its agents."`
}

func (c foldersCreateCmd) Run(ctx context.Context, s streams) error {
	f, err := c.createFolder(ctx, c.Name, map[string]any{"description": c.Description, "skills": c.Skills})
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(s, f)
	}
	_, err = fmt.Fprintln(s.out, f.ID)
	return err
}

type foldersDeleteCmd struct {
	remote
	asked
	Folder string `arg:"" help:"Name or ID of the folder."`
	Yes    bool   `help:"Delete it without asking."`
}

func (c foldersDeleteCmd) Run(ctx context.Context, s streams) error {
	f, err := c.findFolder(ctx, c.Folder)
	if err != nil {
		return err
	}
	if !c.Yes {
		if err := confirm(s, fmt.Sprintf("the folder %q (%s) and all its files", f.Name, f.ID)); err != nil {
			return err
		}
	}
	if err := c.send(ctx, http.MethodDelete, "/v1/folders/"+f.ID, nil, nil); err != nil || !c.JSON {
		return err
	}
	return printJSON(s, f)
}

// findFolder returns the folder with an ID or a name. If one folder's name is another folder's ID, the ID wins.
func (r remote) findFolder(ctx context.Context, nameOrID string) (f files.Folder, err error) {
	if idPattern.MatchString(nameOrID) {
		err = r.get(ctx, "/v1/folders/"+nameOrID, &f)
		if refused, ok := errors.AsType[*refusedRequest](err); !ok || refused.status != http.StatusNotFound {
			return f, err
		}
	}
	var list []files.Folder
	if err := r.get(ctx, "/v1/folders/?limit=1000&name="+url.QueryEscape(nameOrID), &list); err != nil {
		return f, err
	}
	for _, f := range list {
		if f.Name == nameOrID {
			return f, nil
		}
	}
	return f, unknownFolder(nameOrID)
}

// unknownFolder is the error for a folder's name that does not exist.
type unknownFolder string

func (e unknownFolder) Error() string {
	return fmt.Sprintf("there is no folder %q: 'loci folders list' shows them", string(e))
}

// createFolder creates a folder. It leaves out those of the fields that have a zero value.
func (r remote) createFolder(ctx context.Context, name string, more map[string]any) (f files.Folder, err error) {
	fields := map[string]any{"name": name}
	for field, value := range more {
		if value != "" && value != false {
			fields[field] = value
		}
	}
	err = r.send(ctx, http.MethodPost, "/v1/folders/", fields, &f)
	return f, err
}
