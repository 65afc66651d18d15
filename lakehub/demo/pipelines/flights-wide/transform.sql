SELECT
  f.flight_date,
  f.carrier,
  f.flight,
  f.origin,
  f.dest,
  a.name AS dest_name,
  a.tzone AS dest_timezone,
  f.status,
  f.arr_delay,
  f.tailnum,
  p.manufacturer,
  p.model,
  p.seats,
  w.id AS weather_id,
  w.temp,
  w.wind_speed,
  w.visib
FROM <SRC> f
LEFT JOIN planes p ON f.tailnum = p.tailnum
LEFT JOIN airports a ON f.dest = a.faa
LEFT JOIN weather w ON f.origin = w.origin AND f.time_hour = w.time_hour
