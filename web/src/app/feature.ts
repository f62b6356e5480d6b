import type { ComponentType, ReactNode } from 'react'
import type { Session } from '../api/admin'

export type SystemPermission =
  | 'manage_users' | 'manage_permissions' | 'manage_entities' | 'manage_endpoints'
  | 'tenant_settings' | 'can_manage_external_users' | 'login_as' | 'all_entity_access'

/** Icon of Tabler, or anything that draws itself at 16 px. */
export type Icon = ComponentType<{ size?: number | string; stroke?: number | string; 'aria-hidden'?: boolean; className?: string }>

/** Who may open a page: anybody on the staff when absent, else who has one of these; the owner has all. The server checks again. */
export type Needs = readonly SystemPermission[]

/** One page. Its module is loaded when it is opened; it exports the component as default. */
export interface Page {
  /** path under /admin, e.g. "/settings/api-keys" or "/data/$entity". A $name is read with useParam. */
  path: string
  /** title for the tab and the last crumb; the page may replace it with <Page title>. */
  title: string
  /** crumbs before the title: the specification's names, each with an address when there is one. */
  crumbs?: readonly { label: string; to?: string }[]
  load: () => Promise<{ default: () => ReactNode }>
  needs?: Needs
  /** bare pages have no shell around them and no session: sign-in and its neighbours. */
  bare?: boolean
}

export type RailGroup = 'top' | 'data' | 'build' | 'users' | 'settings'

/** A line of the rail. Children open under it, one level deep. */
export interface RailEntry {
  group: RailGroup
  /** order within the group, by tens, as in design.md. */
  order: number
  label: string
  icon: Icon
  to: string
  needs?: Needs
  /** under is the label of the parent line ("Integrations and API", "Access and security"). */
  under?: string
  /** Count draws a figure at the line's end; it may load it with useQuery. */
  Count?: ComponentType
}

/** A part of the rail that a feature draws itself, e.g. the entities of Data. */
export interface RailPart { group: RailGroup; order: number; Part: ComponentType<{ shut: boolean }> }

/** One thing the palette can go to or do. */
export interface PaletteItem {
  id: string
  label: string
  /** note stands at the right, small. */
  note?: string
  bad?: boolean
  icon: Icon
  to?: string
  run?: () => void
}

/** A group of the palette. find is asked at each pause in typing; it is stopped by the signal when more is typed. */
export interface PaletteSource {
  id: string
  /** title over the group; it may depend on what was typed. */
  title: string
  /** prefix that asks this source alone: @ users, # entities, / endpoints, > do. */
  prefix?: '@' | '#' | '/' | '>'
  order: number
  needs?: Needs
  find: (text: string, context: { session: Session; signal: AbortSignal }) => Promise<readonly PaletteItem[]> | readonly PaletteItem[]
}

/** What a feature brings to the console; app/features.ts lists them all. */
export interface Feature {
  name: string
  pages: readonly Page[]
  rail?: readonly RailEntry[]
  railParts?: readonly RailPart[]
  palette?: readonly PaletteSource[]
  /** Status is drawn in the header of every page: "Public API on". */
  Status?: ComponentType
}

/** may says whether the session may open something that needs these. */
export function may(session: Session, needs: Needs | undefined): boolean {
  if (!needs || needs.length === 0 || session.owner) return true
  return needs.some((need) => session.system.includes(need))
}
